//! KQL over a bare DataFusion session: a CSV file is registered as a table, and KQL asks for its rows.
//!
//! `cargo run -p querent-kql --example bare_datafusion`

use std::sync::Arc;

use datafusion::execution::SessionStateBuilder;
use datafusion::prelude::{CsvReadOptions, SessionContext};
use querent_kql::{KqlParameters, StoredComparisons};

const FLIGHTS: &str = "\
carrier,origin,departed,distance
UA,SFO,2013-01-01T05:17:00,1400
AA,JFK,2013-01-01T05:42:00,1089
UA,EWR,2013-01-01T06:05:00,719
B6,JFK,2013-01-02T05:59:00,944
";

const QUERY: &str = "
flights
| where departed < datetime(2013-01-02)
| summarize flights = count(), longest = max(distance) by carrier
| sort by carrier asc";

#[tokio::main]
#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a program of its own, without Querent's catalog")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("flights.csv");
    tokio::fs::write(&file, FLIGHTS).await?;

    // The rule lets filters on stored times reach the files; KQL works without it.
    let state =
        SessionStateBuilder::new().with_default_features().with_optimizer_rule(Arc::new(StoredComparisons)).build();
    let context = SessionContext::new_with_state(state);
    context.register_csv("flights", file.to_string_lossy(), CsvReadOptions::new()).await?;

    let planned = querent_kql::plan(&context.state(), QUERY, &KqlParameters::new()).await?;
    let columns = planned.columns.clone();
    let batches = context.execute_logical_plan(planned.plan).await?.collect().await?;

    let names: Vec<String> =
        columns.iter().map(|column| format!("{}: {}", column.name, column.kql_type.name())).collect();
    println!("{}", names.join(", "));
    for batch in &batches {
        for row in 0..batch.num_rows() {
            let cells = columns.iter().zip(batch.columns()).map(|(column, array)| column.text(array.as_ref(), row));
            println!("{}", cells.collect::<Vec<_>>().join(", "));
        }
    }
    Ok(())
}
