//! Sealed records, for records that leave the host.

use super::record::Record;
use super::record_error::RecordError;
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::borrow::Cow;

/// The name of the format of a sealed record.
const SEALED_SCHEMA: &str = "ptc-sealed/1";

/// The first line of a sealed record.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SealLine<'a> {
    sealed: Cow<'a, str>,
    tenant: Cow<'a, str>,
    expires_ms: i64,
    /// HMAC-SHA256 in hexadecimal.
    seal: String,
}

impl Record {
    /// Returns the record with a seal, for a record that leaves the host.
    ///
    /// Without the key, no one can change it, give it to another tenant, or use it after `expires_ms`, in milliseconds
    /// since 1970-01-01T00:00:00Z. The key is a secret of 32 bytes or more. The record is not encrypted. It can also be
    /// used more than once; to prevent that, the host must keep track of used records.
    ///
    /// # Errors
    /// [`RecordError::EmptyKey`] for an empty key, such as from a missing setting.
    ///
    /// ```
    /// use lisp_runtime::{Engine, Input, Record, Recording};
    /// let recording = Recording::new();
    /// Engine::default().eval("(+ 1 2)", Input::new().record(&recording));
    /// let sealed = recording.record()?.seal(&[7; 32], "acme", 2_000)?;
    /// assert!(Record::unseal(&sealed, &[7; 32], "acme", 1_000).is_ok());
    /// assert!(Record::parse(&*sealed).unwrap_err().to_string().contains("Record::unseal"));
    /// assert!(Record::unseal(&sealed, &[7; 32], "other", 1_000).is_err());
    /// assert!(Record::unseal(&sealed, &[7; 32], "acme", 3_000).is_err());
    /// assert!(recording.record()?.seal(b"", "acme", 2_000).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn seal(&self, key: &[u8], tenant: &str, expires_ms: i64) -> Result<String, RecordError> {
        if key.is_empty() {
            return Err(RecordError::EmptyKey);
        }
        let seal = mac(key, tenant, expires_ms, &self.text).finalize().into_bytes();
        let line = SealLine {
            sealed: Cow::Borrowed(SEALED_SCHEMA),
            tenant: Cow::Borrowed(tenant),
            expires_ms,
            seal: seal.iter().map(|byte| format!("{byte:02x}")).collect(),
        };
        // Texts and a number: this cannot fail.
        Ok(format!("{}\n{}", serde_json::to_string(&line).unwrap_or_default(), self.text))
    }

    /// Checks the seal of a sealed record, then parses the record.
    ///
    /// # Errors
    /// The key is empty; the key, the tenant or the content does not match the seal; or the seal has expired. Then
    /// those of [`Record::parse`].
    pub fn unseal(text: &str, key: &[u8], tenant: &str, now_ms: i64) -> Result<Record, RecordError> {
        if key.is_empty() {
            return Err(RecordError::EmptyKey);
        }
        if text.len() > Record::MAX_BYTES {
            return Err(RecordError::TooLarge { bytes: text.len(), limit: Record::MAX_BYTES });
        }
        let (first, text) = text.split_once('\n').unwrap_or((text, ""));
        let line: SealLine<'_> = serde_json::from_str(first)
            .map_err(|error| RecordError::Line { line: 1, why: format!("no seal: {error}") })?;
        if line.sealed != SEALED_SCHEMA {
            return Err(RecordError::Schema(line.sealed.chars().take(100).collect()));
        }
        let digits = line.seal.as_bytes().chunks(2).map(|two| std::str::from_utf8(two).ok());
        let seal: Option<Vec<u8>> = digits.map(|two| u8::from_str_radix(two?, 16).ok()).collect();
        let whole = mac(key, &line.tenant, line.expires_ms, text);
        if line.tenant != tenant || seal.is_none_or(|seal| whole.verify_slice(&seal).is_err()) {
            return Err(RecordError::Seal);
        }
        if now_ms >= line.expires_ms {
            return Err(RecordError::Expired { expired_ms: line.expires_ms, now_ms });
        }
        Record::parse(text)
    }
}

fn mac(key: &[u8], tenant: &str, expires_ms: i64, text: &str) -> Hmac<Sha256> {
    // A key longer than a block of the hash is hashed; every length is accepted.
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap_or_else(|_| Hmac::new(&Default::default()));
    for part in [SEALED_SCHEMA, tenant] {
        mac.update(&(part.len() as u64).to_be_bytes());
        mac.update(part.as_bytes());
    }
    mac.update(&expires_ms.to_be_bytes());
    mac.update(text.as_bytes());
    mac
}
