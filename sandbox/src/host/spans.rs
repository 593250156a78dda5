//! Spans of the crate `tracing` for processes, with the feature `tracing`. The host emits them, because a run's process
//! cannot. Without the feature they do nothing.

#[cfg(feature = "tracing")]
mod on {
    use lisp_runtime::remote::HostHalf;
    use tracing::field::Empty;
    use tracing::{Span, info_span};

    /// The span `child`, from the order of a process until it is reaped; its parent is the span of the run.
    #[derive(Clone, Debug)]
    pub(crate) struct ChildSpan(Span);

    impl ChildSpan {
        pub(crate) fn begin(host: &HostHalf) -> Self {
            let parent = host.span();
            let span = info_span!(
                target: "ptc_lisp",
                parent: parent,
                "child",
                killed = Empty,
                cpu_us = Empty,
                rss_peak_bytes = Empty,
            );
            ChildSpan(span)
        }

        pub(crate) fn end(&self, killed: bool, used: Option<(u64, u64)>) {
            self.0.record("killed", killed);
            if let Some((cpu_us, rss_peak_bytes)) = used {
                self.0.record("cpu_us", cpu_us);
                self.0.record("rss_peak_bytes", rss_peak_bytes);
            }
        }
    }

    /// The span `template`: the start of a template.
    pub(crate) fn template<T, E>(start: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let span = info_span!(target: "ptc_lisp", "template", ready = Empty);
        let started = span.in_scope(start);
        span.record("ready", started.is_ok());
        started
    }
}

#[cfg(not(feature = "tracing"))]
mod off {
    use lisp_runtime::remote::HostHalf;

    #[derive(Clone, Debug)]
    pub(crate) struct ChildSpan;

    impl ChildSpan {
        pub(crate) fn begin(_: &HostHalf) -> Self {
            ChildSpan
        }

        pub(crate) fn end(&self, _: bool, _: Option<(u64, u64)>) {}
    }

    pub(crate) fn template<T, E>(start: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        start()
    }
}

#[cfg(not(feature = "tracing"))]
pub(crate) use off::{ChildSpan, template};
#[cfg(feature = "tracing")]
pub(crate) use on::{ChildSpan, template};
