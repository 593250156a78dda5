//! The recipes of docs/cookbook.md run as they stand there, and print what the page says.

use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn recipes_print_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("cookbook");
    fs::create_dir_all(folder.join("examples")).unwrap();
    fs::copy(root.join("examples/orders.json"), folder.join("examples/orders.json")).unwrap();
    let bin = Path::new(env!("CARGO_BIN_EXE_ptcl")).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let page = fs::read_to_string(root.join("docs/cookbook.md")).unwrap();
    let mut recipes = 0;
    for block in page.split("```sh\n").skip(1) {
        let (command, rest) = block.split_once("```\n").unwrap();
        let wanted = rest.strip_prefix("\n```text\n").and_then(|rest| rest.split_once("```")).map(|(text, _)| text);
        let wanted = wanted.unwrap_or_else(|| panic!("the page does not say what this prints: {command}"));
        let done = Command::new("sh").args(["-c", command]).current_dir(&folder).env("PATH", &path).output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert_eq!((out.trim_end(), &*err, done.status.code()), (wanted.trim_end(), "", Some(0)), "{command}");
        recipes += 1;
    }
    assert!(recipes >= 20, "{recipes}");
}
