fn main() { lisp_sandbox::init(); }
