//! A call that the client forces, for models whose server may pass over the choice: a reply without the call is
//! followed, once, by a turn that is held to the call's schema. What such a reply says is not passed on: a client that
//! forces a call waits for nothing else.

use futures::StreamExt;
use futures::stream::BoxStream;

use super::{ToolCalling, TurnRequest, no_forced_call};
use crate::error::Result;
use crate::models::{DoneReason, ModelEvent, ModelToolCall, ToolChoice};

/// Follows a turn of `first`, unless it makes the call, with one of `model` that is held to a schema. Text is passed on
/// from the call on.
pub(super) fn with_forced_call(
    model: ToolCalling,
    turn: TurnRequest,
    mut first: BoxStream<'static, Result<ModelEvent>>,
) -> BoxStream<'static, Result<ModelEvent>> {
    let events = async_stream::stream! {
        let mut held = Vec::new();
        let mut is_made = false;
        let mut spent = None;
        while let Some(event) = first.next().await {
            match event {
                // One that was cut may have been about to call.
                Ok(ModelEvent::Done { usage, reason: DoneReason::Stop }) if !is_made => {
                    spent = Some(usage);
                    break;
                }
                Ok(event @ (ModelEvent::Text(_) | ModelEvent::ToolCall(_))) if !is_made => {
                    is_made = matches!(&event, ModelEvent::ToolCall(call) if is_forced(call, &turn.tool_choice));
                    held.push(event);
                    if is_made {
                        for event in held.drain(..) {
                            yield Ok(event);
                        }
                    }
                }
                Ok(done @ ModelEvent::Done { .. }) => {
                    for event in held.drain(..) {
                        yield Ok(event);
                    }
                    yield Ok(done);
                }
                other => yield other,
            }
        }
        let Some(spent) = spent else { return };
        drop(first);
        tracing::info!("the model's server passed over `tool_choice`; the call is forced by its schema");
        let mut second = match Box::pin(model.forced_turn(turn)).await {
            Ok(second) => second,
            Err(error) => {
                yield Err(error);
                return;
            }
        };
        while let Some(event) = second.next().await {
            match event {
                Ok(ModelEvent::Done { reason: DoneReason::Stop, .. }) if !is_made => yield Err(no_forced_call("")),
                Ok(ModelEvent::Done { mut usage, reason }) => {
                    usage += spent;
                    yield Ok(ModelEvent::Done { usage, reason });
                }
                other => {
                    is_made |= matches!(&other, Ok(ModelEvent::ToolCall(_)));
                    yield other;
                }
            }
        }
    };
    events.boxed()
}

/// Whether a call is one that `choice` forces.
fn is_forced(call: &ModelToolCall, choice: &ToolChoice) -> bool {
    match choice {
        ToolChoice::Named(name) => call.name == *name,
        ToolChoice::Auto | ToolChoice::None | ToolChoice::Required => true,
    }
}
