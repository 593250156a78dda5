//! News between processes, by LISTEN and NOTIFY.
//!
//! A transaction that notifies holds a lock of the whole server until its commit is on the disk, so notifying commits happen
//! one after another: 200 in a second instead of 6,100, with 16 clients on a disk that takes 4 ms. Therefore the operations
//! do not notify. The process collects what they have changed, and sends it in batches, in transactions that write nothing
//! and wait for no disk. A process that is killed in between loses hints, no data.

use super::super::news::{News, channel};
use super::pool::Pool;
use futures_util::stream::{Stream, StreamExt, poll_fn};
use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, broadcast};
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{AsyncMessage, Client, Error};

/// How many runs may have news that are not sent yet. Others are forgotten.
const MAX_PENDING: usize = 4_096;
/// The bytes of a notice: below the 8,000 that PostgreSQL allows.
const NOTICE_BYTES: usize = 7_500;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LAST_PAUSE: Duration = Duration::from_secs(5);
/// The time for a statement, and for connecting.
const LIMIT: Duration = Duration::from_secs(10);
/// How often a silent connection is tried.
const SILENCE: Duration = Duration::from_secs(15);

/// Sends and receives news.
pub(super) struct Notices {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for Notices {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Shared {
    sender: broadcast::Sender<News>,
    pending: Mutex<Pending>,
    /// There is something to send.
    wake: Notify,
}

#[derive(Default)]
struct Pending {
    is_queued: bool,
    replied: BTreeSet<Arc<str>>,
    changed: BTreeSet<Arc<str>>,
    is_closing: bool,
}

impl Notices {
    /// Starts to send and to receive.
    pub(super) fn start(pool: Arc<Pool>) -> Self {
        let shared = Arc::new(Shared { sender: channel(), pending: Mutex::default(), wake: Notify::new() });
        let task = tokio::spawn(shared.clone().run(pool));
        Notices { shared, task }
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<News> {
        self.shared.sender.subscribe()
    }

    /// Sends news to all processes, this one included, soon.
    pub(super) fn send(&self, news: News) {
        {
            let mut pending = self.shared.pending();
            let (runs, run_id) = match news {
                News::Queued => {
                    pending.is_queued = true;
                    drop(pending);
                    self.shared.wake.notify_one();
                    return;
                }
                News::Replied(run_id) => (&mut pending.replied, run_id),
                News::Changed(run_id) => (&mut pending.changed, run_id),
            };
            if runs.len() < MAX_PENDING {
                runs.insert(run_id);
            }
        }
        self.shared.wake.notify_one();
    }

    /// Sends what is left, and ends.
    pub(super) async fn close(&self) {
        self.shared.pending().is_closing = true;
        self.shared.wake.notify_one();
        let ended = async {
            while !self.task.is_finished() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        if timeout(Duration::from_secs(1), ended).await.is_err() {
            self.task.abort();
        }
    }
}

impl Shared {
    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Connects again and again, until the store is closed.
    async fn run(self: Arc<Self>, pool: Arc<Pool>) {
        let mut pause = FIRST_PAUSE;
        loop {
            if let Ok(Ok((client, mut connection))) = timeout(LIMIT, pool.connect()).await {
                let messages = poll_fn(|cx| connection.poll_message(cx));
                tokio::select! {
                    () = self.receive(messages) => {}
                    sent = self.send_all(&client) => if sent.is_ok() { return },
                }
                pause = FIRST_PAUSE;
            }
            if self.pending().is_closing {
                return;
            }
            tracing::debug!("news of the store: connecting again");
            sleep(pause).await;
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    /// Passes news on until the connection ends.
    async fn receive(&self, messages: impl Stream<Item = Result<AsyncMessage, Error>>) {
        let mut messages = pin!(messages);
        while let Some(Ok(message)) = messages.next().await {
            if let AsyncMessage::Notification(notification) = message {
                for news in parse(notification.payload()) {
                    // Without subscribers there is nobody to tell.
                    let _ = self.sender.send(news);
                }
            }
        }
    }

    /// Listens, and sends news until the store is closed.
    ///
    /// # Errors
    /// If the connection is lost.
    async fn send_all(&self, client: &Client) -> Result<(), ()> {
        // Nothing is written, so that there is nothing to wait for on the disk.
        quick(client.batch_execute("set synchronous_commit = off; listen ptc_lisp")).await?;
        // Before that news may have been lost.
        let _ = self.sender.send(News::Queued);
        let send =
            quick(client.prepare("select pg_notify('ptc_lisp', notice) from unnest($1::text[]) as notice")).await?;
        loop {
            let (notices, is_closing) = self.take();
            if !notices.is_empty() {
                quick(client.query(&send, &[&notices])).await?;
            } else if is_closing {
                return Ok(());
            } else if timeout(SILENCE, self.wake.notified()).await.is_err() {
                quick(client.batch_execute("")).await?;
            }
        }
    }

    /// Takes what is to be sent, as texts of notices.
    fn take(&self) -> (Vec<String>, bool) {
        let pending = &mut *self.pending();
        let queued = std::mem::take(&mut pending.is_queued).then(|| "q".to_owned());
        let replied = std::mem::take(&mut pending.replied).into_iter().map(|run_id| format!("r:{run_id}"));
        let changed = std::mem::take(&mut pending.changed).into_iter().map(|run_id| format!("c:{run_id}"));
        (notices(queued.into_iter().chain(replied).chain(changed)), pending.is_closing)
    }
}

async fn quick<T>(statement: impl Future<Output = Result<T, Error>>) -> Result<T, ()> {
    timeout(LIMIT, statement).await.map_err(|_| ())?.map_err(|_| ())
}

/// Packs news into notices: JSON arrays of texts. News that do not fit into a notice are left out.
fn notices(news: impl Iterator<Item = String>) -> Vec<String> {
    let mut notices: Vec<String> = Vec::new();
    for text in news {
        let Ok(text) = serde_json::to_string(&text) else { continue };
        if text.len() > NOTICE_BYTES {
            continue;
        }
        match notices.last_mut() {
            Some(last) if last.len() + text.len() < NOTICE_BYTES => {
                last.push(',');
                last.push_str(&text);
            }
            _ => notices.push(format!("[{text}")),
        }
    }
    for notice in &mut notices {
        notice.push(']');
    }
    notices
}

/// Returns the news of a notice.
fn parse(notice: &str) -> impl Iterator<Item = News> {
    let texts: Vec<String> = serde_json::from_str(notice).unwrap_or_default();
    texts.into_iter().filter_map(|text| match text.split_once(':') {
        None if text == "q" => Some(News::Queued),
        Some(("r", run_id)) => Some(News::Replied(run_id.into())),
        Some(("c", run_id)) => Some(News::Changed(run_id.into())),
        // A later version's.
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_come_back_from_notices() {
        let ids: Vec<String> = (0..2_000).map(|n| format!("run-{n}\0\n\"{n}")).collect();
        let news =
            ids.iter().map(|id| format!("c:{id}")).chain(["q".to_owned(), "c:".repeat(8_000), "r:x:y".to_owned()]);
        let notices = notices(news);
        assert!(notices.iter().all(|notice| notice.len() < 8_000 && !notice.contains('\0')));
        let found: Vec<News> = notices.iter().flat_map(|notice| parse(notice)).collect();
        let expected = ids.iter().map(|id| News::Changed(id.as_str().into()));
        assert!(found.into_iter().eq(expected.chain([News::Queued, News::Replied("x:y".into())])));
        assert_eq!(parse("[\"z:1\", \"q:\", 7]").count(), 0);
        assert_eq!(parse("nonsense").count(), 0);
    }
}
