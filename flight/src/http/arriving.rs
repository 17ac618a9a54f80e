//! Bodies of requests that are on their way: together they take bounded memory, and the slowest gives way to a faster one.

use std::time::{Duration, Instant};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::request::{too_large, too_slow};
use crate::config::HttpSettings;
use crate::error::{ApiError, ErrorCode};

/// The most bytes of bodies that have begun to arrive, of all requests together, unless a body alone may be half as
/// large: a connection may have many that never end.
const MAX_ARRIVING_BYTES: u64 = 256 << 20;
/// A body that is no larger always has room.
const SMALL_BODY_BYTES: u64 = 64 << 10;
/// A body gives way to one that arrives this many times as fast.
const MUCH_FASTER: u64 = 4;
/// What a body's time is rounded up by, so that a first piece says little.
const ROUNDED: Duration = Duration::from_millis(100);

/// Begins what some editors and programs write, and says nothing: it may be passed over, in JSON too (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

static ARRIVING: Mutex<ArrivingBodies> = Mutex::new(ArrivingBodies { bytes: 0, next_id: 0, large: Vec::new() });

/// Reads the whole body, at most `limit` bytes, within `http.body_timeout`, without a byte order mark.
/// Errors: `body_too_large`, `body_timeout`, `bad_request_body`, `too_many_requests`.
pub(super) async fn read_body(body: Body, limit: u64, settings: &HttpSettings) -> Result<Bytes, ApiError> {
    let within = settings.body_timeout.0;
    let most = MAX_ARRIVING_BYTES.max(limit.max(settings.max_query_bytes.0).saturating_mul(2));
    let mut arriving = ArrivingBody::begin(&ARRIVING, most);
    let gave_way = arriving.gave_way.clone();
    tokio::select! {
        biased;
        () = gave_way.cancelled() => Err(no_room()),
        read = tokio::time::timeout(within, arrived(body, limit, &mut arriving)) => read.map_err(|_| too_slow(within))?,
    }
}

async fn arrived(body: Body, limit: u64, arriving: &mut ArrivingBody) -> Result<Bytes, ApiError> {
    let mut limited = Limited::new(body, usize::try_from(limit).unwrap_or(usize::MAX));
    let mut whole = BytesMut::new();
    while let Some(frame) = limited.frame().await {
        let frame = frame.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
            Some(_) => too_large(limit),
            None => {
                let message =
                    format!("the request's body broke off, or is not what its Content-Encoding says: {error}");
                ApiError::new(ErrorCode::BadRequestBody, message)
            }
        })?;
        // Trailers say nothing that is asked for.
        if let Ok(data) = frame.into_data() {
            if !arriving.take(data.len() as u64, Instant::now()) {
                return Err(no_room());
            }
            whole.extend_from_slice(&data);
        }
    }
    if whole.starts_with(BYTE_ORDER_MARK) {
        let _ = whole.split_to(BYTE_ORDER_MARK.len());
    }
    Ok(whole.freeze())
}

fn no_room() -> ApiError {
    let message = "the bodies of other requests that are on their way take all room for them";
    ApiError::new(ErrorCode::TooManyRequests, message).with_hint("send the request again in a moment")
}

/// What has arrived of all bodies that are not whole yet.
struct ArrivingBodies {
    bytes: u64,
    next_id: u64,
    /// Those over [`SMALL_BODY_BYTES`], which may have to give way.
    large: Vec<LargeBody>,
}

struct LargeBody {
    id: u64,
    began: Instant,
    bytes: u64,
    gave_way: CancellationToken,
}

impl LargeBody {
    /// Bytes a second since the body began.
    fn speed(&self, now: Instant) -> u64 {
        let taken = now.saturating_duration_since(self.began) + ROUNDED;
        self.bytes.saturating_mul(1_000) / (taken.as_millis() as u64).max(1)
    }
}

/// One body, counted among all until it is whole, given up or gives way.
struct ArrivingBody {
    all: &'static Mutex<ArrivingBodies>,
    id: u64,
    began: Instant,
    bytes: u64,
    most: u64,
    gave_way: CancellationToken,
}

impl ArrivingBody {
    fn begin(all: &'static Mutex<ArrivingBodies>, most: u64) -> Self {
        let mut bodies = all.lock();
        let id = bodies.next_id;
        bodies.next_id += 1;
        Self { all, id, began: Instant::now(), bytes: 0, most, gave_way: CancellationToken::new() }
    }

    /// Counts `bytes` more. Returns whether there is room for them, where need be that of slower bodies.
    fn take(&mut self, bytes: u64, now: Instant) -> bool {
        let mut bodies = self.all.lock();
        // Whoever made it give way has its bytes.
        if self.gave_way.is_cancelled() {
            return false;
        }
        self.bytes += bytes;
        bodies.bytes += bytes;
        if self.bytes <= SMALL_BODY_BYTES {
            return true;
        }
        let own = LargeBody { id: self.id, began: self.began, bytes: self.bytes, gave_way: self.gave_way.clone() };
        let own_speed = own.speed(now);
        match bodies.large.iter_mut().find(|body| body.id == self.id) {
            Some(body) => *body = own,
            None => bodies.large.push(own),
        }
        while bodies.bytes > self.most {
            let slowest = (0..bodies.large.len()).min_by_key(|place| bodies.large[*place].speed(now));
            let Some(place) = slowest.filter(|place| {
                let body = &bodies.large[*place];
                body.id != self.id && body.speed(now).saturating_mul(MUCH_FASTER) <= own_speed
            }) else {
                return false;
            };
            let body = bodies.large.swap_remove(place);
            bodies.bytes -= body.bytes;
            body.gave_way.cancel();
        }
        true
    }
}

impl Drop for ArrivingBody {
    fn drop(&mut self) {
        let mut bodies = self.all.lock();
        if !self.gave_way.is_cancelled() {
            bodies.bytes -= self.bytes;
            bodies.large.retain(|body| body.id != self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: u64 = 1 << 20;

    fn no_bodies() -> &'static Mutex<ArrivingBodies> {
        Box::leak(Box::new(Mutex::new(ArrivingBodies { bytes: 0, next_id: 0, large: Vec::new() })))
    }

    #[test]
    fn bodies_that_never_end_leave_room_for_small_ones() {
        let all = no_bodies();
        let body = || ArrivingBody::begin(all, ROOM);
        let (mut first, mut second, mut small) = (body(), body(), body());
        let now = Instant::now();
        assert!(first.take(ROOM, now));
        assert!(second.take(SMALL_BODY_BYTES, now) && small.take(1_000, now));
        assert!(!second.take(1, now), "they are as fast as each other");
        drop((first, second));
        assert!(small.take(100_000, now));
        drop(small);
        assert_eq!(all.lock().bytes, 0);
    }

    #[test]
    fn a_slow_body_gives_way_to_a_fast_one() {
        let all = no_bodies();
        let mut slow: Vec<ArrivingBody> = (0..4).map(|_| ArrivingBody::begin(all, ROOM)).collect();
        let began = Instant::now();
        for body in &mut slow {
            assert!(body.take(ROOM / 4, began));
        }
        let later = began + Duration::from_secs(60);
        let mut fast = ArrivingBody::begin(all, ROOM);
        fast.began = later;
        assert!(fast.take(ROOM / 2, later));
        let gave_way = slow.iter().filter(|body| body.gave_way.is_cancelled()).count();
        assert_eq!((gave_way, all.lock().bytes), (2, ROOM));
        for body in &mut slow {
            assert!(!body.take(1, later), "those that gave way are over, the others find no slower one");
        }
        drop((slow, fast));
        assert_eq!(all.lock().bytes, 0);
    }
}
