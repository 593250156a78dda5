//! How hosts and models see a tool: its name, its line, its description, and its HTTP request.

use super::naming::symbol;
use super::operation::Operation;
use super::tool::{Tool, ToolCall, ToolError};
use super::tool_set::Tools;
use serde::Serialize;
use std::sync::Arc;

impl Tool {
    /// Renames the tool, for example to add a prefix for its origin.
    ///
    /// As with [`Tool::from_json_schema`], the name may be any text. If programs cannot write it, they use it with
    /// `%XX` for its special bytes.
    ///
    /// ```
    /// use lisp_runtime::Tool;
    /// let tool = Tool::external("read").renamed("files__read/file");
    /// assert_eq!((tool.name(), tool.given_name()), ("files__read%2Ffile", "files__read/file"));
    /// ```
    #[must_use]
    pub fn renamed(self, name: &str) -> Self {
        self.amend(|contract| {
            contract.name = symbol(name);
            contract.given_name = (contract.name != name).then(|| name.to_owned());
        })
    }

    /// Returns the signature as models see it: as it was written, or derived from the schemas.
    pub fn signature_text(&self) -> &str {
        self.contract.text.as_deref().unwrap_or_default()
    }

    /// Returns what the signature text does not show although calls are checked for it; `None` if it shows everything.
    pub fn remark(&self) -> Option<&str> {
        self.contract.schemas.as_ref()?.remark()
    }

    /// Returns the full description: the line, whether the tool is tagged, the remark, the description, and the
    /// descriptions of the parameters.
    ///
    /// ```
    /// use lisp_runtime::Tool;
    /// let schema = r#"{"properties": {"q": {"type": "string", "description": "What to look for."}}}"#;
    /// let tool = Tool::from_json_schema("find", "Finds things.", schema, None)?;
    /// assert_eq!(tool.describe(), "tool/find (q? :string, ...) -> :any\nFinds things.\n  q: What to look for.\n");
    /// # Ok::<(), lisp_runtime::tools::SchemaError>(())
    /// ```
    pub fn describe(&self) -> String {
        let mut out = format!("tool/{} {}", self.name(), self.signature_text()).trim_end().to_owned();
        out.push('\n');
        let tagged =
            self.treatment.tagged.then_some("It is tagged: it returns {:ok result}, or {:error {:message ..}}.");
        for text in [tagged, self.remark(), self.contract.description.as_deref()].into_iter().flatten() {
            out.push_str(text.trim());
            out.push('\n');
        }
        if let Some(schemas) = &self.contract.schemas {
            out.push_str(&schemas.notes());
        }
        out
    }

    /// Returns the HTTP request of the tool, if it comes from [`Tools::from_openapi`].
    pub fn operation(&self) -> Option<&Operation> {
        self.operation.as_deref()
    }
}

impl Tools {
    /// Sets one handler for all tools. It finds the name of the tool in [`ToolCall::name`].
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Tools};
    /// let imported = Tools::from_mcp_list(r#"[{"name": "a/b", "inputSchema": {"type": "object"}}]"#)?;
    /// let tools = imported.tools.with_handler(|call| Ok(format!("{} called", call.name())));
    /// let engine = Engine::builder().grant_all(tools).build()?;
    /// assert_eq!(engine.eval("(tool/a%2Fb)", Input::new()).value::<String>()?, "a/b called");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn with_handler<R: Serialize>(
        self,
        function: impl Fn(&ToolCall) -> Result<R, ToolError> + Send + Sync + 'static,
    ) -> Self {
        let function = Arc::new(function);
        let mut tools = Tools::new();
        for tool in self.into_all() {
            let function = function.clone();
            tools.insert(tool.with_handler(move |call| function(call)));
        }
        tools
    }
}
