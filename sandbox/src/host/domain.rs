//! Domains in the host's API: runs that trust each other, in processes that serve one run after the other.

#[cfg(feature = "async")]
use super::domains::Wait;
use super::domains::{DomainState, Seat};
use super::running::Running;
use super::sandbox::Sandbox;
use crate::guest::layers::SetupError;
use crate::wire::messages::Order;
use lisp_runtime::remote::{HostHalf, Job};
use lisp_runtime::{Input, Outcome, Request};
use std::sync::Arc;
#[cfg(feature = "async")]
use std::task::Waker;

/// A group of runs that trust each other, such as those of one tenant. Created by [`Sandbox::domain`].
///
/// The runs of a domain share processes. Each process is locked down like that of any other run. It serves one run
/// after the other, each on a fresh machine under its own limits. Process isolation separates the domain from
/// everything else: the host, other domains and other runs. Within a domain, the in-process limits separate runs.
/// Native code that one run managed to execute could see and change later runs in the same process.
///
/// - A process is replaced after [`DomainLimits::runs`](crate::DomainLimits::runs),
///   [`DomainLimits::max_age`](crate::DomainLimits::max_age) and
///   [`DomainLimits::growth_bytes`](crate::DomainLimits::growth_bytes). It is also replaced after every run that did
///   not end in order: one that was killed, whose process died, or that ended in `host_fault`.
/// - A process serves one run at a time, so losing a process never affects another run.
/// - [`Usage::cpu_us`](lisp_runtime::outcome::Usage::cpu_us) and [`Usage::rss_peak_bytes`](lisp_runtime::outcome::Usage::rss_peak_bytes)
///   are figures of processes. They are missing for a run that leaves its process alive.
///
/// ```no_run
/// # use lisp_runtime::Input;
/// # use lisp_sandbox::Sandbox;
/// # fn example(sandbox: &Sandbox) -> Result<(), Box<dyn std::error::Error>> {
/// let acme = sandbox.domain("acme")?;
/// for n in 0..1_000 {
///     assert_eq!(acme.eval("(inc data/n)", &Input::new().data("n", &n)).value::<i64>()?, n + 1);
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Domain {
    pub(crate) sandbox: Sandbox,
    pub(crate) state: Arc<DomainState>,
}

impl Sandbox {
    /// Returns the domain with this name, whose runs share processes because they trust each other.
    ///
    /// # Errors
    /// Returns an error if the name is empty or longer than
    /// [`DomainLimits::NAME_BYTES`](crate::DomainLimits::NAME_BYTES), or if
    /// [`DomainLimits::domains`](crate::DomainLimits::domains) other domains are in use.
    pub fn domain(&self, name: &str) -> Result<Domain, SetupError> {
        Ok(Domain { sandbox: self.clone(), state: self.domains().get(name)? })
    }
}

impl Domain {
    /// Returns the name of the domain.
    pub fn name(&self) -> &str {
        &self.state.name
    }

    /// Returns the current number of its processes.
    pub fn processes(&self) -> usize {
        self.state.alive()
    }

    /// Runs a request in this domain, regardless of the domain that the request names.
    pub fn run(&self, request: &Request<'_>) -> Outcome {
        let mut input = Input::new();
        match self.sandbox.engine().split_request(request, &mut input) {
            Ok((job, host)) => self.run_job(&job, host),
            Err(outcome) => *outcome,
        }
    }

    /// Compiles and runs a program. An error in the program is reported in the outcome.
    pub fn eval(&self, source: &str, input: &Input<'_>) -> Outcome {
        match self.sandbox.split(source, input, false) {
            Ok((job, host)) => self.run_job(&job, host),
            Err(outcome) => *outcome,
        }
    }

    pub(crate) fn run_job(&self, job: &Job<'_>, mut host: HostHalf) -> Outcome {
        let bytes = match self.sandbox.prepare(job, &mut host) {
            Ok(bytes) => bytes,
            Err(outcome) => return *outcome,
        };
        self.run_as(self.order(&host, bytes.len()), &bytes, host)
    }

    /// Runs a job in a process that matches the order.
    pub(crate) fn run_as(&self, order: Order, job: &[u8], mut host: HostHalf) -> Outcome {
        loop {
            let (seat, mut running) = match self.start(order, &mut host) {
                Ok(seated) => seated,
                Err(outcome) => return *outcome,
            };
            running.give_job(&mut host, job);
            match running.next_report(&mut host) {
                Some(report) => return seat.end(running, report, &mut host, self.sandbox.domains()),
                // It had ended while it was idle. Another one takes its place.
                None if seat.is_warm() && running.missed_job() => {}
                None => return running.finish(&mut host),
            }
        }
    }

    /// Takes an idle process, or starts a new one.
    fn start(&self, order: Order, host: &mut HostHalf) -> Result<(Seat, Box<Running>), Box<Outcome>> {
        let (seat, warm) = match self.state.take(&order, host) {
            Ok(taken) => taken,
            Err(error) => return Err(Box::new(host.fail(error, None))),
        };
        let running = match warm {
            Some(mut running) => {
                self.sandbox.begin_in_domain(host, &mut running);
                running
            }
            None => Box::new(self.sandbox.order_child(host, order, false)?),
        };
        Ok((seat, running))
    }

    /// Returns the process for a run, and its slot; `kept` is a slot that was found before. `None` if there is no room
    /// now: the waker is called when a slot may be free.
    #[cfg(feature = "async")]
    pub(crate) fn try_start(
        &self,
        wait: &mut Option<Wait>,
        kept: &mut Option<Seat>,
        job_bytes: usize,
        (host, waker): (&HostHalf, &Waker),
    ) -> Result<Option<Box<Running>>, SetupError> {
        let order = self.order(host, job_bytes);
        if kept.is_none() {
            let waiting = wait.get_or_insert_with(|| self.state.wait());
            let Some((seat, warm)) = waiting.try_take(&order, waker) else { return Ok(None) };
            (*kept, *wait) = (Some(seat), None);
            if let Some(mut running) = warm {
                self.sandbox.begin_in_domain(host, &mut running);
                return Ok(Some(running));
            }
        }
        Ok(self.sandbox.try_order(host, order, false)?.map(Box::new))
    }

    /// Returns the requirements of a run on its process.
    pub(crate) fn order(&self, host: &HostHalf, job_bytes: usize) -> Order {
        self.sandbox.child_of_domain(host, job_bytes, self.state.limits.max_age)
    }
}
