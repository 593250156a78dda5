//! The guest's side: the template that forks, its children, and the layers that lock both down.

#[cfg(target_os = "linux")]
pub(crate) mod child;
#[cfg(target_os = "linux")]
pub(crate) mod filter;
#[cfg(target_os = "linux")]
pub(crate) mod huge_pages;
pub(crate) mod layers;
#[cfg(target_os = "linux")]
pub(crate) mod lockdown;
#[cfg(target_os = "linux")]
pub(crate) mod template;
