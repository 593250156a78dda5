//! JSON Schemas as signatures, for checks before a run: what a schema surely says, and nothing else.

use super::document::{Document, Subschema, Target};
use super::signature::{Field, Fields, Signature, Type, is_name, same_name};
use serde_json::{Map, Value};

/// The maximum nesting of types.
const DEPTH: usize = 8;
/// Keywords with schemas that may list further fields.
const MORE: [&str; 4] = ["allOf", "if", "dependentSchemas", "dependencies"];
/// Keywords with schemas of which one holds.
const FORMS: [&str; 2] = ["anyOf", "oneOf"];
/// The maximum number of schemas that are looked into.
const STEPS: usize = 2_000;

/// Returns the signature of a tool with these schemas. Values that its schemas refuse may fit it; those that they accept do.
pub(super) fn signature_of(input: &Value, output: Option<&Value>) -> Option<Signature> {
    let mut steps = STEPS;
    let params = {
        let document = Document::of(input).ok()?;
        let mut reader = Reader { document: &document, steps: &mut steps, is_result: false };
        reader.parameters()
    };
    let output = match output {
        Some(output) => {
            let document = Document::of(output).ok()?;
            Reader { document: &document, steps: &mut steps, is_result: true }.of(document.root, 0)
        }
        None => Type::Any,
    };
    Some(Signature::new(params, output))
}

struct Reader<'a, 'd> {
    document: &'a Document<'d>,
    steps: &'a mut usize,
    is_result: bool,
}

impl<'d> Reader<'_, 'd> {
    /// Arguments are an object even if the schema does not say so.
    fn parameters(&mut self) -> Fields {
        let root = self.target(self.document.root);
        let has_more = |root: &Subschema<'d>| MORE.iter().chain(&FORMS).any(|keyword| root.get(keyword).is_some());
        let fields = root.filter(|root| !has_more(root) && root.get("patternProperties").is_none());
        match fields {
            Some(root) => self.fields(root, 0),
            None => Fields { all: Vec::new(), open: true },
        }
    }

    /// Follows references.
    fn target(&mut self, mut sub: Subschema<'d>) -> Option<Subschema<'d>> {
        while let Some(reference) = sub.get("$ref").and_then(Value::as_str) {
            // What stands beside a reference holds too.
            if MORE
                .iter()
                .chain(&FORMS)
                .chain(&["properties", "patternProperties"])
                .any(|beside| sub.get(beside).is_some())
            {
                return None;
            }
            *self.steps = self.steps.checked_sub(1)?;
            match self.document.target(sub, reference) {
                Target::Known(target) => sub = target,
                Target::Standard | Target::Unknown => return None,
            }
        }
        let is_known = !["$dynamicRef", "$recursiveRef"].iter().any(|keyword| sub.get(keyword).is_some());
        is_known.then_some(sub)
    }

    fn of(&mut self, sub: Subschema<'d>, depth: usize) -> Type {
        if depth == DEPTH || *self.steps == 0 {
            return Type::Any;
        }
        *self.steps -= 1;
        let Some(sub) = self.target(sub) else { return Type::Any };
        if MORE.iter().any(|keyword| sub.get(keyword).is_some()) {
            return Type::Any;
        }
        if FORMS.iter().any(|keyword| sub.get(keyword).is_some()) && sub.get("properties").is_some() {
            return Type::Any;
        }
        for keyword in FORMS {
            if let Some(Value::Array(forms)) = sub.get(keyword) {
                let forms = forms.iter().map(|form| self.of(sub.part(form), depth + 1));
                return either(forms.collect());
            }
        }
        match (sub.get("type"), sub.get("enum"), sub.get("const")) {
            (Some(Value::String(name)), _, _) => self.named(name, sub, depth),
            (Some(Value::Array(names)), _, _) => {
                let names = names.iter().filter_map(Value::as_str);
                either(names.map(|name| self.named(name, sub, depth)).collect())
            }
            (None, Some(Value::Array(values)), _) => either(values.iter().map(type_of).collect()),
            (None, None, Some(value)) => type_of(value),
            _ => Type::Any,
        }
    }

    fn named(&mut self, name: &str, sub: Subschema<'d>, depth: usize) -> Type {
        match name {
            "string" => Type::String,
            // Of a result, 2.0 is an integer too.
            "integer" if !self.is_result => Type::Int,
            "integer" | "number" => Type::Float,
            "boolean" => Type::Bool,
            "null" => Type::Optional(Box::new(Type::Any)),
            "array" => match (sub.get("items"), sub.get("prefixItems")) {
                (Some(items @ Value::Object(_)), None) => Type::List(Box::new(self.of(sub.part(items), depth + 1))),
                _ => Type::List(Box::new(Type::Any)),
            },
            "object" if sub.get("properties").is_some() => Type::Fields(self.fields(sub, depth)),
            "object" => Type::Map,
            _ => Type::Any,
        }
    }

    fn fields(&mut self, sub: Subschema<'d>, depth: usize) -> Fields {
        let required = |name: &str| {
            let all = sub.get("required").and_then(Value::as_array);
            all.is_some_and(|all| all.iter().any(|one| one == name))
        };
        // Most schemas allow other fields only because they do not say that there are none. That holds for arguments, which
        // are passed on. A program that reads a field of a result wants one that is there.
        let open = match sub.get("additionalProperties") {
            Some(Value::Bool(false)) => false,
            Some(_) => true,
            None => !self.is_result,
        };
        let mut fields = Fields { all: Vec::new(), open: open || sub.get("patternProperties").is_some() };
        for (name, part) in sub.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            if !is_name(name) || fields.all.iter().any(|field| same_name(&field.name, name)) {
                fields.open = true;
                continue;
            }
            let of = self.of(sub.part(part), depth + 1);
            let of = match (required(name), of) {
                (false, of @ Type::Optional(_)) | (true, of) => of,
                (false, of) => Type::Optional(Box::new(of)),
            };
            fields.all.push(Field { name: name.clone(), of });
        }
        // An object of which nothing is said may have anything.
        fields.open |= fields.all.is_empty() && sub.get("additionalProperties").is_none();
        fields
    }
}

/// Returns the type of values that have one of these types.
fn either(types: Vec<Type>) -> Type {
    let null = Type::Optional(Box::new(Type::Any));
    let is_optional = types.iter().any(|of| matches!(of, Type::Optional(_)));
    let mut others = types.into_iter().filter(|of| *of != null).map(|of| match of {
        Type::Optional(of) => *of,
        of => of,
    });
    let Some(first) = others.next() else { return null };
    let of = if others.all(|other| other == first) { first } else { Type::Any };
    // An optional `:any` is only null here.
    if is_optional && of != Type::Any { Type::Optional(Box::new(of)) } else { of }
}

fn type_of(value: &Value) -> Type {
    match value {
        Value::Null => Type::Optional(Box::new(Type::Any)),
        Value::Bool(_) => Type::Bool,
        Value::Number(_) => Type::Float,
        Value::String(_) => Type::String,
        Value::Array(_) => Type::List(Box::new(Type::Any)),
        Value::Object(_) => Type::Map,
    }
}
