//! Functions that return several values where a query makes columns, and functions over whole series.

use super::{answered, cells, code_of, flights};
use crate::sql::admin;

const SERIES: &str = "print x = dynamic([23, 46, 23, 87, 4, 8, 3, 75, 2, 56, 13, 75, 32, 16, 29])";

/// Hours of five weeks: what a day brings, less at weekends, more with time, and a dip.
const HOURS: &str = "range t from 0 to 839 step 1 \
    | extend y = iff((t / 24) % 7 >= 5, 5.0, 15.0) - (t % 24 / 10) * (t % 24 / 10) + t / 72.0 + sin(t * t) \
    | extend y = iff(t == 150, y - 20.0, y) | summarize y = make_list(y)";

#[tokio::test(flavor = "multi_thread")]
async fn several_values_become_several_columns() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for (kql, expected) in [
        (
            "project series_stats(x)",
            "series_stats_x_min:real series_stats_x_min_idx:long series_stats_x_max:real series_stats_x_max_idx:long \
             series_stats_x_avg:real series_stats_x_stdev:real series_stats_x_variance:real",
        ),
        ("extend st = series_stats(x)", "x:dynamic st:real"),
        ("extend (least, at) = series_stats(x)", "x:dynamic least:real at:long"),
        (
            "project x, (rs, slope, v) = series_fit_line(x)",
            "x:dynamic rs:real slope:real v:real series_fit_line_x_rvariance:real series_fit_line_x_interception:real \
             series_fit_line_x_line_fit:dynamic",
        ),
        ("extend x = series_decompose(x)", "x:dynamic"),
        (
            "extend series_fft(x) | project-away x | extend series_fft(series_fft_x_real)",
            "series_fft_x_real:dynamic series_fft_x_imag:dynamic series_fft_series_fft_x_real_real:dynamic \
             series_fft_series_fft_x_real_imag:dynamic",
        ),
        (
            "project series_periods_detect(x, 0, 5, 1), series_periods_detect(x, 0, 5, 2)",
            "series_periods_detect_x_periods:dynamic series_periods_detect_x_scores:dynamic \
             series_periods_detect_x_periods1:dynamic series_periods_detect_x_scores1:dynamic",
        ),
        (
            "project series_decompose_anomalies(pack_array(1, 2))",
            "series_decompose_anomalies__ad_flag:dynamic series_decompose_anomalies__ad_score:dynamic \
             series_decompose_anomalies__baseline:dynamic",
        ),
    ] {
        let query = format!("{SERIES} | {kql}");
        let (columns, rows) = answered(&session, &query).await.unwrap_or_else(|error| panic!("`{query}`: {error}"));
        assert_eq!(columns.join(" "), expected, "{query}");
        assert_eq!(rows.len(), 1, "{query}");
    }
    let (columns, rows) = answered(&session, "print a = 1, (least, at) = series_stats(dynamic([3, 2]))").await.unwrap();
    assert_eq!(columns[..3], ["a:long", "least:real", "at:long"]);
    assert_eq!(rows[0][..3], ["1", "2.0", "1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_of_several_values_is_a_columns_whole_expression() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for kql in [
        "where series_stats(x) > 1",
        "extend y = series_stats(x) + 1",
        "extend y = series_multiply(2, series_decompose(x))",
        "extend (a, b, c) = series_fft(x)",
    ] {
        assert_eq!(code_of(&session, &format!("{SERIES} | {kql}")).await, "kql_invalid", "{kql}");
    }
    // A function of the query's own may have such a name.
    let own = "let series_stats = (x: dynamic) { array_length(x) };";
    assert_eq!(cells(&session, &format!("{own} {SERIES} | project series_stats(x) + 1")).await, [["16"]]);
    // What it does not take.
    assert_eq!(code_of(&session, "print series_stats(1)").await, "kql_type_mismatch");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_row_has_its_own_series() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let query = "union (print k = 1, s = dynamic([1, 3, 5])), (print k = 2, s = dynamic([2, null, 0])), \
                 (print k = 3, s = dynamic(null)), (print k = 4, s = dynamic([])) \
                 | extend (low, at) = series_stats(s), (rs, slope) = series_fit_line(s), (low2) = series_stats(s, true) \
                 | sort by k asc | project k, low, at, rs, slope, low2";
    assert_eq!(
        cells(&session, query).await,
        [
            ["1", "1.0", "0", "1.0", "2.0", "1.0"],
            ["2", "null", "null", "1.0", "-1.0", "0.0"],
            ["3", "null", "null", "null", "null", "null"],
            ["4", "null", "null", "null", "null", "null"],
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn series_are_taken_apart_and_put_together() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let weekly = format!("{HOURS} | project (periods, scores) = series_periods_detect(y, 4, 400, 2)");
    assert!(cells(&session, &weekly).await[0][0].starts_with("[168.0,"));
    // The parts add up, the pattern repeats, and the dip is the one anomaly.
    let parts = format!(
        "{HOURS} | extend (baseline, seasonal, trend, residual) = series_decompose(y, -1, 'linefit'), \
         (flag, score) = series_decompose_anomalies(y, 8.0, -1, 'linefit') \
         | mv-expand y to typeof(real), baseline to typeof(real), trend to typeof(real), seasonal to typeof(real), \
           residual to typeof(real), flag to typeof(long) \
         | serialize t = row_number(0), before = prev(seasonal, 168) \
         | summarize countif(abs(y - baseline - residual) > 1e-9 or abs(baseline - seasonal - trend) > 1e-9), \
           countif(t >= 168 and seasonal != before), make_list_if(t, flag != 0), make_list_if(flag, flag != 0)"
    );
    assert_eq!(cells(&session, &parts).await, [["0", "0", "[150]", "[-1]"]]);
    // A week ahead, from what was before.
    let ahead = "range t from 0 to 69 step 1 | extend y = iff(t < 56, t + 10.0 * (t % 7), 0.0) \
                 | summarize y = make_list(y) | extend forecast = series_decompose_forecast(y, 14) \
                 | mv-expand forecast to typeof(real) | serialize t = row_number(0) \
                 | where t >= 56 | summarize max(abs(forecast - (t + 10.0 * (t % 7))))";
    let furthest: f64 = cells(&session, ahead).await[0][0].parse().unwrap();
    assert!(furthest < 5.0, "{furthest}");
}

#[tokio::test(flavor = "multi_thread")]
async fn series_are_filtered_compared_and_transformed() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    for (kql, expected) in [
        ("series_fir(dynamic([0, 0, 3, 0, 0]), dynamic([1, 1, 1]))", "[0.0,0.0,1.0,1.0,1.0]"),
        ("series_fir(dynamic([0, 0, 3, 0, 0]), dynamic([1, 1, 1]), true, true)", "[0.0,1.0,1.0,1.0,0.0]"),
        ("series_fir(dynamic([0, 0, 3, 0, 0]), dynamic([1, 1, 1]), false)", "[0.0,0.0,3.0,3.0,3.0]"),
        ("series_fir(dynamic([1, 4, 9, 16]), dynamic([1, -1]))", "[1.0,3.0,5.0,7.0]"),
        ("series_fir(dynamic([1, null, 1]), dynamic([1, 1]))", "[0.5,null,null]"),
        ("round(series_pearson_correlation(dynamic([1, 2, 3]), dynamic([2, 4, 7])), 6)", "0.993399"),
        ("series_pearson_correlation(dynamic([1, 2, 3]), dynamic([1, 2]))", "null"),
        ("round(series_cosine_similarity(dynamic([1, 2]), dynamic([2, 1])), 6)", "0.8"),
        ("series_cosine_similarity(dynamic([1, 2]), dynamic([2, 1]), 2.0, 4.0)", "0.5"),
        ("series_outliers(dynamic([1, 2, 3, 4, 100]), 'tukey')[4]", "48.0"),
        ("series_seasonal(dynamic([1, 3, 5, 1, 3, 5, 2, 4, 6]), 3)", "[1.0,3.0,5.0,1.0,3.0,5.0,1.0,3.0,5.0]"),
        ("series_seasonal(dynamic([1, 3, 5, 2, 4, 6, 1, 3, 5, 2, 4, 6]))[5]", "0.0"),
        ("round(welch_test(20.82, 7.9, 15, 22.98, 3.8, 15), 3)", "0.022"),
        ("round(beta_cdf(0.5, 10, 20), 6)", "0.969286"),
        ("round(beta_inv(beta_cdf(0.2, 10, 20), 10, 20), 6)", "0.2"),
        ("series_fit_line_dynamic(dynamic([1, 3, 5])).slope", "2.0"),
        ("series_fit_2lines_dynamic(dynamic([1, 2, 3, 3, 2, 1])).split_idx", "3"),
        ("series_fit_2lines_dynamic(dynamic([1, 2, 3, 3, 2, 1])).right.slope", "-1.0"),
    ] {
        assert_eq!(cells(&session, &format!("print {kql}")).await, [[expected]], "{kql}");
    }
    let back = "print x = dynamic([1, 5, 2, 8, 3]) | extend (re, im) = series_fft(x) | extend (x2) = series_ifft(re, im) \
                | mv-expand x to typeof(real), x2 to typeof(real) | summarize max(abs(x - x2)) < 1e-12";
    assert_eq!(cells(&session, back).await, [["True"]]);
    let polynomial = "range x from -5 to 5 step 1 | summarize x = make_list(x), y = make_list(x * x - 3.0 * x + 2) \
                      | project (rs, coefficients) = series_fit_poly(y, x, 2) \
                      | project round(rs, 9), round(toreal(coefficients[0]), 9), round(toreal(coefficients[1]), 9), \
                        round(toreal(coefficients[2]), 9)";
    assert_eq!(cells(&session, polynomial).await, [["1.0", "1.0", "-3.0", "2.0"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn long_series_are_refused_or_quick() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let long = "range t from 1 to 200000 step 1 | summarize y = make_list(t % 1000 * 1.0)";
    let period = format!("{long} | extend (p) = series_periods_detect(y, 0, 100000, 1) | project array_length(p)");
    assert_eq!(cells(&session, &period).await, [["1"]]);
    let split = format!("{long} | extend (rs) = series_fit_2lines(y) | project rs between (0.0 .. 1.0)");
    assert_eq!(cells(&session, &split).await, [["True"]]);
    assert_eq!(code_of(&session, &format!("{long} | project series_fir(y, y)")).await, "invalid_value");
    assert_eq!(code_of(&session, "print series_periods_detect(dynamic([1]), 1, 2, 1000000000)").await, "invalid_value");
}

/// What is no number, or beyond all bins, is in none of them.
#[tokio::test(flavor = "multi_thread")]
async fn axes_have_bins_for_numbers_only() {
    let (_folder, engine) = flights().await;
    let session = admin(&engine);
    let reals = "datatable(c:real)[1.0, real(nan), 2.0, 1e300] | where not(c > 1e200) | make-series v=count() on c";
    let all = "datatable(c:real)[1.0, real(nan), 2.0, real(inf), 1e300] | make-series v=count() on c";
    let long = "datatable(c:long)[9223372036854775807, -9223372036854775807, 1] | make-series v=count() on c";
    for (kql, expected) in [
        (format!("{all} from 0 to 4 step 1"), [["[0,1,1,0]", "[0.0,1.0,2.0,3.0]"]]),
        (format!("{reals} step 1"), [["[1,1]", "[1.0,2.0]"]]),
        (format!("{long} from 0 to 3 step 1"), [["[0,1,0]", "[0,1,2]"]]),
    ] {
        assert_eq!(cells(&session, &kql).await, expected, "{kql}");
    }
    assert_eq!(code_of(&session, &format!("{all} step 1")).await, "kql_invalid");
    assert_eq!(code_of(&session, &format!("{long} step 10")).await, "kql_invalid");
}
