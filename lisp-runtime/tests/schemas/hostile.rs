use lisp_runtime::Tool;
#[test] fn x(){ let _ = Tool::external("a"); }
