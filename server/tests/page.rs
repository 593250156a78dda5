//! The page shows what programs and people wrote as `lisp_runtime::internal::visible` does.

#[test]
fn the_page_writes_out_what_would_hide() {
    let script = include_str!("../src/page/page.js");
    let (_, class) = script.split_once("const hidden = /").unwrap();
    let (class, _) = class.split_once("/gu;").unwrap();
    let hidden = regex::Regex::new(class).unwrap();
    for c in (0..=0x0010_ffff).filter_map(char::from_u32) {
        let text = c.to_string();
        assert_eq!(hidden.is_match(&text), lisp_runtime::internal::visible(&text) != text, "{c:?}");
    }
    // Nothing that came from outside goes into the page by another way.
    let put = |line: &&str| line.contains("textContent =") || line.contains("textContent:");
    for line in script.lines().filter(put).filter(|line| !line.contains("visible(")) {
        let (_, value) = line.split_once("textContent = ").unwrap();
        assert!(value.starts_with('"'), "{line}");
    }
    assert!(!script.contains("innerHTML"));
}
