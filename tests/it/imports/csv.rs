//! CSV: types and dialects beside DuckDB's sniffer, headers, every option, lines that are set aside.

use serde_json::{Value, json};

use super::{import, types, write};
use crate::duckdb::duckdb;
use crate::maintenance::parquet_files;
use crate::sql::{admin, engine, rows};

/// Files of which types, header and rows are DuckDB's.
const LIKE_DUCKDB: &[&[u8]] = &[
    b"zip,name\n00501,a\n06090,b\n",
    b"zip,name\n501,a\n06090,b\n",
    b"a,b\n0,0.5\n10,-0.5\n",
    b"a,b\n 1 ,x\n 22 ,y\n",
    b"d\n31.12.2024\n01.02.2024\n",
    b"d,x\n3/30/12,1\n1/2/12,2\n",
    b"d,x\n12/31/2015,1\n1/5/2015,2\n",
    b"d,x\n2015/01/01 01:00:00,1\n2015/01/02 02:00:00,2\n",
    b"d,x\n01/13/2015 01:00:00 PM,1\n01/14/2015 02:00:00 AM,2\n",
    b"d,x\n31/12/2020 10:00:00,1\n30/12/2020 11:00:00,2\n",
    b"d,x\n2015-01-01 01:00,1\n2015-01-01 02:00,2\n",
    b"d,x\n1/13/2015 1:00,1\n1/14/2015 2:00,2\n",
    b"t,x\n10:00:00,1\n23:59:59.5,2\n",
    b"t,x\n25:00:00,1\n1:10:00,2\n",
    b"t,x\n2013-01-01T10:00:00+02:00,1\n2013-01-01T10:00:00Z,2\n",
    b"t,x\n20130101,1\n20130102,2\n",
    b"t,x\n2013-1-1,1\n2013-2-10,2\n",
    b"b,x\ntrue,1\nFalse,2\nTRUE,3\n",
    b"b,x\nt,1\nf,2\n",
    b"b,x\nyes,1\nno,2\n",
    b"t\n2013-01-01T10:00:00Z\n2013-01-02T10:00:00Z\n",
    b"t\n2015/01/01 01:00:00\n2015/01/02 02:00:00\n",
    b"f,t\n2013-01-01,2013-01-02\n2013-02-01,2013-02-03\n",
    b"b,x\n1,1\n0,2\n",
    b"b,x\nY,1\nN,2\n",
    b"h,x\n\"1,234\",1\n\"2,345,678\",2\n",
    b"h;x\n1,5;1\n2,25;2\n",
    b"h,x\n1e5,1\n1E-3,2\n",
    b"h,x\n1.5,1\nNaN,2\n",
    b"h,x\n+1,1\n+2,2\n",
    b"h,x\n1_000,1\n2,2\n",
    b"h,x\n\"\",1\n5,2\n",
    b"a,b\n\"x\ny\",1\n\"z\",2\n",
    b"a,b\r\n1,x\r\n2,y\r\n",
    b"\xef\xbb\xbfa,b\n1,x\n2,y\n",
    b"a\tb\n1\tx\n2\ty\n",
    b"a|b\n1|x\n2|y\n",
    b"name\nbob\n\nalice\n",
    b"a,b\n1,2\n\n3,4\n",
    b"\n\na,b\n1,2\n3,4\n",
    b"a,b\n1,2\n# mid\n3,4\n",
    b"color\n#ff0000\n#00ff00\n",
    b"#ff0000\n#00ff00\n#0000ff\n",
    b"word\nalpha\n# #\n#win NN\nzeta\n",
    b"n\n1\n#2\n3\n",
    b"Some title\nSource: here\n\na,b,c\n1,2,3\n4,5,6\n",
    b"1,x\n2,y\n3,z\n",
    b"1,2,3\n",
    b"a,b,c\n",
    b"country,1990,1991\nFrance,5,6\nSpain,7,8\n",
    b",x,y\n0,1.5,a\n1,2.5,b\n",
    b"a,b\n1,2,\n3,4,\n",
    b"a,b\n1,\n2,\n",
    b"a,b\n'x,y',1\n'z',2\n",
    b"a,b\n\"x \"\"q\"\" y\",1\n\"z\",2\n",
    b"a,b\n\"x \\\"q\\\" y\",1\n\"z\",2\n",
    b"a,b\n5\" pipe,1\nz,2\n",
    b"a, b\n1, \"x,y\"\n2, \"z\"\n",
    b"a,b\n1.2.3,1\n1.10.4,2\n",
    b"a,b\n2013-02-30,1\n2013-02-20,2\n",
];

#[tokio::test(flavor = "multi_thread")]
async fn types_headers_and_rows_are_those_of_duckdb() {
    let (folder, engine) = engine().await;
    let mut statements = Vec::new();
    let mut files = Vec::new();
    for (number, bytes) in LIKE_DUCKDB.iter().enumerate() {
        let path = write(folder.path(), &format!("f{number}.csv"), bytes);
        let place = path.display();
        statements.push(format!(
            "SELECT HasHeader, list_transform(Columns, c -> c.type), (SELECT count(*) FROM read_csv('{place}', sample_size=-1)) \
             FROM sniff_csv('{place}', sample_size=-1)"
        ));
        files.push(path);
    }
    let statements: Vec<&str> = statements.iter().map(String::as_str).collect();
    let sniffed = duckdb(&folder.path().join("data"), "", &statements);
    for ((bytes, path), theirs) in LIKE_DUCKDB.iter().zip(&files).zip(&sniffed) {
        let text = String::from_utf8_lossy(bytes);
        let outcome = import(&engine, path, &[]).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
        let reading = outcome.reading.unwrap();
        let ours: Value = json!([[reading.header, types(&reading), outcome.rows]]);
        assert_eq!(&ours, theirs, "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_a_type_would_change_stays_text() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("t.csv");
    for (values, note) in [
        (["99999999999999999999", "1"], None),
        (["9007199254740993", "0.5"], None),
        (["1/2/2012", "3/4/2012"], Some("date_format")),
        (["31.12.24", "30.12.24"], Some("date_format")),
        (["0x10", "0xff"], None),
        (["F", "F"], None),
        (["2013-01-01T10:00:00Z", "2013-01-01T10:00:00"], None),
        (["-05", "+5"], None),
        (["007", "8"], None),
        (["2024-01-01 10:00:00.1234567", "9999-12-31 23:59:59.9999999"], None),
    ] {
        std::fs::write(&file, format!("v,n\n{},1\n{},2\n", values[0], values[1])).unwrap();
        let reading = import(&engine, &file, &[]).await.unwrap().reading.unwrap();
        assert_eq!(types(&reading), ["VARCHAR", "BIGINT"], "{values:?}");
        let said = reading.columns[0].note.clone().unwrap_or_default();
        assert!(note.is_none_or(|note| said.contains(note)) && note.is_some() != said.is_empty(), "{values:?}: {said}");
        assert_eq!(rows(&session, "SELECT v FROM t ORDER BY n").await.unwrap(), values.map(|value| [value]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_record_is_kept_unless_it_names_the_columns() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = folder.path().join("t.csv");
    for (text, header, count) in [
        ("bob,paris\nalice,rome\njoe,paris\n", false, 3),
        ("00501\n00544\n", false, 2),
        ("name,city\nbob,paris\n", true, 1),
        ("a,2\nb,3\n", false, 2),
        // Lines that no delimiter takes apart.
        ("170.167332531 10.269112037\n170.560688674 10.058820647\n", false, 2),
        ("# from 1987\n 0.0000 24.0000  88.0000 UMi\n 8.0000 14.5000  86.5000 UMi\n", false, 2),
        ("AD\t+4230+00131\nAQ\t-7750+16636\tMcMurdo\nAR\t-3436-05827\tBuenos\tAires\nAQ\n", false, 4),
        ("name of 2 things\nbob\nalice b\n", true, 2),
        // What stands for null, and dates whose order nobody can tell, are no names.
        ("0,,null,NA\n1,,null,NA\n", false, 2),
        ("1/2/2020\n1/2/2020\n5/7/1995\n", false, 3),
        ("1|text\n2|'it\\'s'\n'3'|text\n", false, 3),
        ("  # spaces before it\n1;3\n  # again\n4;5\n", false, 2),
        // Nor are infinity among numbers, a word above nothing beside a time, and codes above codes.
        ("-1.5,inf\n2.5,1.5\n", false, 2),
        ("2024-01-01 10:00:00,5,door\n2024-01-01 10:01:00,6,\n2024-01-01 10:02:00,7,\n", false, 3),
        ("2019,2020,door\n1,5,\n2,6,\n", true, 2),
        ("00501,Holtsville\n06090,Simsbury\n01001,Agawam\n", false, 3),
        ("zip,town\n00501,Holtsville\n06090,Simsbury\n", true, 2),
        ("\"1,234\",bob\n\"5,678\",amy\n", false, 2),
        ("\"1,234\",bob\nnone,amy\n", true, 1),
        // Years in equal steps are names where the rows have none.
        ("rownames,1940,1945,1950,1955\nFood,22.2,44.5,59.6,73.2\n", true, 1),
        ("country,1990,1991,1992\nFrance,5,6,7\nSpain,8,9,10\n", true, 2),
        ("a,2001,2002,2003\nb,2002,2003,2004\n", false, 2),
        ("a,2001,2003,2004\nb,5,6,7\n", false, 2),
        // An index has no name, as pandas and R write it.
        (",name,city\n0,Bob,Paris\n1,Amy,Rome\n", true, 2),
        ("\"\",\"name\"\n2024-01-01,\"Bob\"\n2024-01-02,\"Amy\"\n", true, 2),
        (",paris\n1,rome\n2,paris\n3,paris\n", false, 4),
        (",paris\n1,rome\n,oslo\n", false, 3),
        // A few rows below as many lines of text.
        ("Sales\nof May\nby town\na,b,c\n1,2,x\n4,5,y\n", true, 2),
    ] {
        std::fs::write(&file, text).unwrap();
        let outcome = import(&engine, &file, &[]).await.unwrap();
        assert_eq!((outcome.reading.unwrap().header, outcome.rows), (Some(header), Some(count)), "{text:?}");
    }
    // A list of words may have a word that names a column.
    let words: Vec<String> = (0..40).map(|number| format!("w{number},x{number}")).collect();
    std::fs::write(&file, format!("word,meaning\n{}\nword,x\ny,meaning\n", words.join("\n"))).unwrap();
    assert_eq!(import(&engine, &file, &[]).await.unwrap().rows, Some(42));
    // R names no column above the names of rows.
    std::fs::write(&file, "name,year,NA\n1,Amy,1975,NA\n2,Bob,1976,5\n").unwrap();
    let outcome = import(&engine, &file, &[]).await.unwrap();
    let reading = outcome.reading.unwrap();
    assert_eq!((reading.header, reading.header_line, outcome.rows), (Some(true), Some(1), Some(2)));
    assert_eq!(
        rows(&session, "SELECT column_1, name, year, \"NA\" FROM t WHERE name = 'Bob'").await.unwrap(),
        [["2", "Bob", "1976", "5"]]
    );
    std::fs::write(&file, "bob,paris\nalice,rome\n").unwrap();
    let outcome = import(&engine, &file, &[("header", "no")]).await.unwrap();
    assert_eq!(outcome.rows, Some(2));
    assert_eq!(rows(&session, "SELECT column_1 FROM t ORDER BY 1").await.unwrap(), [["alice"], ["bob"]]);
    std::fs::write(&file, "1,2\n3,4\n").unwrap();
    assert_eq!(import(&engine, &file, &[("header", "true")]).await.unwrap().rows, Some(1));
    assert_eq!(rows(&session, "SELECT \"1\" FROM t").await.unwrap(), [["3"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_found_wrong_can_be_told_to_imports_and_external_tables() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let latin: Vec<u8> = "n;w\n1;café\n".chars().map(|char| u32::from(char) as u8).collect();
    type CsvCase<'a> = (&'a [u8], &'a [(&'a str, &'a str)], &'a str, &'a str);
    let cases: [CsvCase<'_>; 34] = [
        (b"zip,n\n00501,1\n", &[("types", "zip=INTEGER")], "SELECT zip + 1 FROM t", "502"),
        (
            b"a,n\nY,1\nn,2\n",
            &[("types", "a=BOOLEAN")],
            "SELECT string_agg(a::VARCHAR, ' ' ORDER BY n) FROM t",
            "true false",
        ),
        (
            b"a,n\n1,2\n",
            &[("types", "*=VARCHAR")],
            "SELECT arrow_typeof(a) = arrow_typeof(n) AND a = '1' FROM t",
            "true",
        ),
        (b"zip,n\n00501,1\n", &[("types", "[\"INTEGER\"]")], "SELECT zip + n FROM t", "502"),
        (b"d\n1/2/2012\n", &[("date_format", "%m/%d/%Y")], "SELECT d FROM t", "2012-01-02"),
        (
            b"d,e\n13.2.2012,2012-03-04\n",
            &[("date_format", "%d.%m.%Y")],
            "SELECT date_part('day', e) * 5 FROM t WHERE d = DATE '2012-02-13' AND e = DATE '2012-03-04'",
            "20",
        ),
        (
            b"d\n1/2/2012 5h07\n",
            &[("timestamp_format", "%d/%m/%Y %Hh%M")],
            "SELECT date_part('month', d) * 100 + date_part('minute', d) FROM t",
            "207",
        ),
        (b"a;b,c\n1;2,3\n", &[("delimiter", ";")], "SELECT \"b,c\" FROM t", "2,3"),
        (b"a\x01b\n1\x01x\n", &[("delimiter", "\\x01")], "SELECT b FROM t", "x"),
        (b"a||b\n1||x|y\n", &[("delimiter", "||")], "SELECT b FROM t", "x|y"),
        ("a→b\n1→é\n".as_bytes(), &[("delimiter", "→")], "SELECT a || b FROM t", "1é"),
        (b"a\n\"x\n", &[("quote", "")], "SELECT a FROM t", "\"x"),
        (b"a,b\n\"x\\\"y\",1\n", &[("escape", "\\")], "SELECT a FROM t", "x\"y"),
        (&latin, &[("encoding", "latin-1")], "SELECT w FROM t", "café"),
        (b"junk,1\na,b\n1,2\n", &[("skip", "1")], "SELECT b FROM t", "2"),
        (b"a,b\n% no\n1,2\n", &[("comment", "%")], "SELECT a + b FROM t", "3"),
        (b"a,b\n-,2\n", &[("null", "-")], "SELECT a IS NULL FROM t", "true"),
        (b"a,b\nNA,2\n1,3\n", &[("null", "")], "SELECT max(a) FROM t", "NA"),
        (b"a,b,c\n1,2,3\n4\n", &[("null_padding", "true")], "SELECT count(*) - count(c) FROM t", "1"),
        (
            b"a,b\n1,2\n3\n4,5,6\n",
            &[("null_padding", "true")],
            "SELECT count(*) * 100 + count(b) * 10 + count(column_3) FROM t",
            "321",
        ),
        (b"a,b\n1,2\n3\n4,5,6\n", &[("ignore_errors", "true")], "SELECT sum(a * 10 + b) FROM t", "12"),
        (b"a,b\n1,2 # no\n3,4#,5\n", &[("comment", "#")], "SELECT sum(a * 10 + b) FROM t", "46"),
        (b"# x\na;b\n1;3#no;5\n6;7\n", &[], "SELECT sum(b) FROM t", "10"),
        (b"no;1;EUR\nfrom;1.1.24;x\nday;text;sum;total\n2;a;-1,5;2,5\n", &[], "SELECT total FROM t", "2,5"),
        (b"a,b\n1,#2\n# x\n3,4\n", &[], "SELECT max(b) FROM t", "4"),
        (
            b"a;b\n1,5;2.000\n-2,25;1.000.000\n",
            &[("decimal_separator", ","), ("thousands", ".")],
            "SELECT sum(a) + sum(b) FROM t",
            "1001999.25",
        ),
        (b"price\n1,5\n2,5\n", &[("decimal", ",")], "SELECT sum(price) FROM t", "4.0"),
        (b"sales\n1,234\n2,345\n", &[("thousands", ",")], "SELECT sum(sales) FROM t", "3579"),
        (b"a,b\n\"1,234\",x\n\"2,345,678\",y\n", &[("thousands", ",")], "SELECT max(a) FROM t", "2345678"),
        ("a;b\n1\u{202f}234;x\n-12;y\n".as_bytes(), &[], "SELECT sum(a) FROM t", "1222"),
        ("a;b\n1\u{a0}234,5;x\n".as_bytes(), &[("decimal_separator", ",")], "SELECT sum(a) FROM t", "1234.5"),
        ("a;b\n1\u{2009}234;x\n".as_bytes(), &[("thousands", "\u{2009}")], "SELECT sum(a) FROM t", "1234"),
        (b"a;b\n1,5;x\n", &[("decimal", ","), ("types", "a=DECIMAL(10,2)")], "SELECT a FROM t", "1.50"),
        (b"a;b\n1.5;x\n2,5;y\n", &[("decimal_separator", ",")], "SELECT max(a) FROM t", "2,5"),
    ];
    for (bytes, options, sql, expected) in cases {
        let file = write(folder.path(), "t.csv", bytes);
        import(&engine, &file, options).await.unwrap_or_else(|error| panic!("{options:?}: {error}"));
        assert_eq!(rows(&session, sql).await.unwrap(), [[expected]], "imported: {options:?}");
        let options: Vec<String> = options.iter().map(|(name, value)| format!("'{name}' '{value}'")).collect();
        let options = if options.is_empty() { String::new() } else { format!("OPTIONS ({})", options.join(", ")) };
        let create =
            format!("CREATE OR REPLACE EXTERNAL TABLE e STORED AS CSV LOCATION '{}' {options}", file.display());
        rows(&session, &create).await.unwrap_or_else(|error| panic!("{create}: {error}"));
        let external = sql.replace("FROM t", "FROM e");
        assert_eq!(rows(&session, &external).await.unwrap(), [[expected]], "external: {options}");
    }
    // A first record of the declared types is data, whatever is below it; one of the declared names is none.
    for (text, expected) in
        [("Pedro,31\nOogie Boogie,\n", "2"), ("Name,Age\nPedro,31\n", "1"), ("x,y\nPedro,31\n", "1")]
    {
        let file = write(folder.path(), "t.csv", text.as_bytes());
        let create = format!(
            "CREATE OR REPLACE EXTERNAL TABLE e (name VARCHAR, age INTEGER) STORED AS CSV LOCATION '{}'",
            file.display()
        );
        rows(&session, &create).await.unwrap();
        assert_eq!(rows(&session, "SELECT count(*) FROM e").await.unwrap(), [[expected]], "{text:?}");
    }
    let utf_16: Vec<u8> = "a,b\n1,é\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let file = write(folder.path(), "people.txt", &utf_16);
    let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
    assert!(error.contains("NUL characters") || error.contains("no known format"), "{error}");
    let file = write(folder.path(), "people.csv", &utf_16);
    assert!(import(&engine, &file, &[]).await.unwrap_err().to_string().contains("the option encoding"));
    import(&engine, &file, &[("encoding", "utf-16")]).await.unwrap();
    assert_eq!(rows(&session, "SELECT b FROM t").await.unwrap(), [["é"]]);

    for (bytes, said) in [
        (b"PK\x03\x04\x14\0\0[Content_Types].xml".as_slice(), "by the format xlsx"),
        (b"PK\x03\x04\x14\0\0a.csv".as_slice(), "unpack it first"),
        (b"PAR1\x15\x04\x15\x10".as_slice(), "by the format parquet"),
        (b"ARROW1\0\0".as_slice(), "by the format arrow"),
    ] {
        let file = write(folder.path(), "t.csv", bytes);
        let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
        assert!(error.contains(said), "{error}");
    }
    let file = write(folder.path(), "t.csv", "PAR1,b\n1,2\n");
    assert_eq!(import(&engine, &file, &[]).await.unwrap().rows, Some(1));

    let file = write(folder.path(), "t.csv", "a\n1\n");
    for (option, value, said) in [
        ("delimeter", ",", "did you mean `delimiter`?"),
        ("types", "b=DATE", "a column `b` that is not there"),
        ("types", "a=GEOMETRY", "takes BOOLEAN"),
        ("encoding", "klingon", "latin-1"),
        ("skip", "x", "a number of lines"),
        ("quote", "ab", "one ASCII character"),
        ("delimiter", "12345", "one to four bytes"),
        ("delimiter", "\\x0a", "escapes from \\x01 to \\x7f"),
        ("decimal_separator", ";", "a point or a comma"),
        ("thousands", ".", "decimal_separator"),
        ("date_format", "%Q", "a format of strftime, such as %d.%m.%Y"),
        ("date_format", "DD.MM.YYYY", "a format of strftime"),
        ("timestamp_format", "%Y-%m-%d %", "a format of strftime, such as %d.%m.%Y %H:%M"),
    ] {
        let error = import(&engine, &file, &[(option, value)]).await.unwrap_err();
        assert_eq!(error.code(), "invalid_option");
        assert!(error.to_string().contains(said), "{error}");
    }
}

/// As the list of time zones is written.
#[tokio::test(flavor = "multi_thread")]
async fn records_of_tabs_below_comments_are_told_from_them() {
    let (folder, engine) = engine().await;
    let text = "# zones, of old\n#\n#country\nAD\t+4230+00131\tAndorra\nAE,OM\t+2518+05518\tDubai\tCrozet\n\
                AF\t+3431+06912\tKabul\nAL\t+4120+01950\tTirane\tx\nAM\t+4011+04430\tYerevan\ty\n#@AE\tAsia/\n";
    let file = write(folder.path(), "zones.tab", text.as_bytes());
    let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
    assert!(error.contains("zones.tab, line 4") && error.contains("null_padding"), "{error}");
    assert_eq!(import(&engine, &file, &[("null_padding", "true")]).await.unwrap().rows, Some(5));
    let found = rows(&admin(&engine), "SELECT min(column_1), max(column_4), count(column_4) FROM t").await.unwrap();
    assert_eq!(found, [["AD", "y", "3"]]);
    // The last line of a block of comments may be the header still, of records that lack fields, too.
    let file = write(folder.path(), "t.tab", b"# all of it\n#a\tb\tc\n1\t2\t3\n4\t5\n");
    import(&engine, &file, &[("null_padding", "true"), ("skip", "1")]).await.unwrap();
    assert_eq!(rows(&admin(&engine), "SELECT sum(\"#a\") FROM t").await.unwrap(), [["5"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_in_double_quotes_is_refused_with_how_it_is_written() {
    let (_folder, engine) = engine().await;
    let error = rows(&admin(&engine), "SELECT * FROM \"in/a.csv.gz\"").await.unwrap_err();
    assert_eq!(error.code(), "table_not_found");
    assert_eq!(error.hint().unwrap(), "the name of a file stands in single quotes: FROM 'in/a.csv.gz'");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_copy_says_which_line_has_no_number() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    rows(&session, "CREATE TABLE n (id BIGINT, price DECIMAL(9, 2), name VARCHAR)").await.unwrap();
    let file = write(folder.path(), "n.csv", b"id,price,name\n1,1.50,007\n2,x,b\n");
    let copy = format!("COPY n FROM '{}'", file.display());
    let error = rows(&session, &copy).await.unwrap_err();
    assert_eq!(error.code(), "bad_data", "{error}");
    assert!(error.to_string().contains("n.csv, line 3, column `price`: expected DECIMAL"), "{error}");
    write(folder.path(), "n.csv", b"id,price,name\n1,1.50,007\n+2,NA,b\n");
    rows(&session, &copy).await.unwrap();
    let copied = rows(&session, "SELECT id, price, name FROM n ORDER BY id").await.unwrap();
    assert_eq!(copied, [["1", "1.50", "007"], ["2", "NULL", "b"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_that_cannot_be_read_are_set_aside_in_a_table() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = write(folder.path(), "t.csv", b"a,b\n1,2\n3\n\"x\ny\",5\n6,\xff\n7,8,9\n10,11\n");
    let options = [("ignore_errors", "true"), ("types", "a=BIGINT")];
    let outcome = import(&engine, &file, &options).await.unwrap();
    let (lines, table) = outcome.rejects.unwrap();
    assert_eq!((outcome.rows, lines, table.table.as_str()), (Some(2), 4, "t_rejects"));
    let expected = [
        ["3", "b", "3", "1 fields where 2 are expected"],
        ["4", "a", "x\ny", "expected BIGINT"],
        ["6", "b", "\u{fffd}", "not UTF-8 text"],
        ["7", "b", "7,8,9", "3 fields where 2 are expected"],
    ];
    let sql = "SELECT line, \"column\", value, error FROM t_rejects WHERE file LIKE '%t.csv' ORDER BY line";
    assert_eq!(rows(&session, sql).await.unwrap(), expected);

    let create = format!(
        "CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{}' OPTIONS ('ignore_errors' 'true', 'types' 'a=BIGINT', \
         'rejects' 'bad_lines')",
        file.display()
    );
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, "SELECT count(*), sum(a) FROM e").await.unwrap(), [["2", "11"]]);
    assert_eq!(rows(&session, "SELECT count(*) FROM bad_lines").await.unwrap(), [["4"]]);

    // Another table of the name is not touched.
    rows(&session, "CREATE OR REPLACE TABLE t_rejects AS SELECT 1 AS own").await.unwrap();
    let files = || parquet_files(&folder.path().join("data")).len();
    let before = files();
    assert_eq!(import(&engine, &file, &options).await.unwrap_err().code(), "already_exists");
    assert_eq!(rows(&session, "SELECT own FROM t_rejects").await.unwrap(), [["1"]]);
    assert_eq!(files(), before, "what was written of it is removed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_is_no_missing_value_where_codes_stand() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let file = write(folder.path(), "t.csv", "code,people,name\nNA,3,Namibia\nDE,NA,NA\nFR,68,France\n");
    let null = import(&engine, &file, &[]).await.unwrap().reading.unwrap().null;
    assert_eq!(null, ["NA"]);
    let counts = "SELECT count(code), count(people), count(name) FROM t";
    assert_eq!(rows(&session, counts).await.unwrap(), [["3", "2", "2"]]);
    let create = format!("CREATE EXTERNAL TABLE e STORED AS CSV LOCATION '{}'", file.display());
    rows(&session, &create).await.unwrap();
    assert_eq!(rows(&session, &counts.replace("FROM t", "FROM e")).await.unwrap(), [["3", "2", "2"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_line_may_name_the_delimiter() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    for (name, text) in [
        ("semicolon.csv", "sep=;\na;b\n1;2,5\n3;4,5\n"),
        ("quoted.csv", "\"sep=|\"\r\na|b\r\n1|2,5\r\n3|4,5\r\n"),
        ("capitals.csv", "\u{feff}SEP=~\na~b\n1~2,5\n3~4,5\n"),
    ] {
        let file = write(folder.path(), name, text);
        let outcome = import(&engine, &file, &[]).await.unwrap();
        let reading = outcome.reading.unwrap();
        assert_eq!((outcome.rows, reading.header_line, reading.skip), (Some(2), Some(2), 1), "{name}");
        assert_eq!(types(&reading), ["BIGINT", "VARCHAR"], "{name}");
        assert_eq!(rows(&session, "SELECT b FROM t ORDER BY a").await.unwrap(), [["2,5"], ["4,5"]], "{name}");
    }
    // What is told goes before it.
    let file = write(folder.path(), "told.csv", "sep=;\na;b\n1;2\n");
    assert_eq!(import(&engine, &file, &[("skip", "2"), ("header", "no")]).await.unwrap().rows, Some(1));
    let file = write(folder.path(), "commas.csv", "sep=;,x\n1,2\n");
    let reading = import(&engine, &file, &[]).await.unwrap().reading.unwrap();
    assert_eq!((reading.delimiter.as_deref(), reading.header_line), (Some(","), Some(1)));
}

/// A page that was saved instead of the file behind it, and other files whose name says csv.
#[tokio::test(flavor = "multi_thread")]
async fn documents_by_the_name_of_csv_are_refused_with_what_to_do() {
    let (folder, engine) = engine().await;
    let utf_32 = b"\xff\xfe\x00\x00a\x00\x00\x00\n\x00\x00\x001\x00\x00\x00\n\x00\x00\x00".as_slice();
    let cases: [(&[u8], &str); 13] = [
        (b"<!DOCTYPE html>\n<html><body>Sign in</body></html>\n", "is XML or HTML"),
        (b"\n <html>\n<body>a,b</body>\n</html>\n", "is XML or HTML"),
        (b"\xef\xbb\xbf<?xml version=\"1.0\"?>\n<a><b>1</b></a>\n", "is XML or HTML"),
        (b"\n<table border=1>\n<tr><td>a</td></tr>\n</table>\n", "is XML or HTML"),
        (b"%PDF-1.4\n1 0 obj\n", "is a PDF"),
        (b"\x01\x02\x03\x04\x05\x06\x07\x08DUCK\x40\0\0\0\0\0\0\0", "is a DuckDB database"),
        (b"ORC\x11\0\0\n", "is ORC or Avro"),
        (b"Obj\x01\x04\x14avro.codec\x08null", "is ORC or Avro"),
        (b"SQLite format 3\0\x10\0\x01\x01\0", "sqlite3 -header -csv"),
        (utf_32, "iconv -f UTF-32 -t UTF-8"),
        (b"i\0d\0\n\x001\0\n\0", "utf-16le"),
        (b"\n\n\n", "blank lines"),
        (b"\xef\xbb\xbf", "holds no line"),
    ];
    for (bytes, said) in cases {
        let file = write(folder.path(), "t.csv", bytes);
        let error = import(&engine, &file, &[]).await.unwrap_err();
        assert_eq!(error.code(), "bad_data");
        assert!(error.to_string().contains(said), "{error}");
    }
    let ducks = write(folder.path(), "t.csv", "animal,\nDUCK,\nORC,\n");
    assert_eq!(import(&engine, &ducks, &[]).await.unwrap().rows, Some(2));
    // Who says how lines are taken apart gets them.
    let file = write(folder.path(), "t.csv", "<html>\n<b>\n</html>\n");
    let lines = [("header", "false"), ("quote", ""), ("delimiter", "\\t")];
    assert_eq!(import(&engine, &file, &lines).await.unwrap().rows, Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_line_of_the_header_is_that_of_an_editor() {
    let (folder, engine) = engine().await;
    for (text, line) in
        [("name\nbob\n", 1), ("# one\n# two\nname\nbob\n", 3), ("# one\na,b\n1,2\n", 2), ("\n\na,b\n1,2\n", 3)]
    {
        let file = write(folder.path(), "t.csv", text);
        let reading = import(&engine, &file, &[]).await.unwrap().reading.unwrap();
        assert_eq!((reading.header, reading.header_line), (Some(true), Some(line)), "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_few_apostrophes_among_lines_of_text_quote_nothing() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    let text = "notes\nthe tag is none\nuse the type\n  'unicodeChar'\n'so'\nand no other\nof them\n";
    import(&engine, &write(folder.path(), "t.txt", text), &[]).await.unwrap();
    let kept = "SELECT notes FROM t WHERE notes LIKE '%''%' ORDER BY length(notes)";
    assert_eq!(rows(&session, kept).await.unwrap(), [["'so'"], ["  'unicodeChar'"]]);
    import(&engine, &write(folder.path(), "t.txt", "'n'\n'a'\n'b'\n"), &[]).await.unwrap();
    assert_eq!(rows(&session, "SELECT n FROM t ORDER BY n").await.unwrap(), [["a"], ["b"]]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_comma_within_numbers_is_not_taken_for_the_delimiter() {
    let (folder, engine) = engine().await;
    let file = folder.path().join("t.csv");
    let cases: [(&str, &[&str]); 13] = [
        ("Berlin;1,5;2,5\nParis;3,5;4,5\n", &["VARCHAR", "VARCHAR", "VARCHAR"]),
        ("1,5;2,5\n3,5;4,5\n", &["VARCHAR", "VARCHAR"]),
        ("2024-01-01;1,5\n2024-01-02;1,7\n", &["DATE", "VARCHAR"]),
        ("1\t1,5\n2\t1,7\n", &["BIGINT", "VARCHAR"]),
        // Lists in fields that are quoted, and a file that both divide.
        ("'790,44'\n'1,5'\n'3,5'\n", &["VARCHAR"]),
        ("price\n1,5\n2,25\n", &["VARCHAR"]),
        ("sales\n1,234,567\n2,345,678\n", &["VARCHAR"]),
        ("Sales\na,b\n1,5\n2,25\n", &["VARCHAR", "VARCHAR"]),
        // Quotes with a backslash before those inside are quotes.
        ("\"x\",\"{\\\"a\\\":1,\\\"b\\\":2}\"\n\"y\",\"{\\\"a\\\":3,\\\"b\\\":4}\"\n", &["VARCHAR", "VARCHAR"]),
        ("\"1,234,567\";\"x\"\n", &["VARCHAR", "VARCHAR"]),
        ("'x','b,c'\n'y','d,e'\n'z','f,g'\n", &["VARCHAR", "VARCHAR"]),
        ("1;\"a,b\"\n2;\"c,d\"\n", &["BIGINT", "VARCHAR"]),
        ("a,b;c,d\ne,f;g,h\n", &["VARCHAR", "VARCHAR", "VARCHAR"]),
    ];
    for (text, columns) in cases {
        std::fs::write(&file, text).unwrap();
        let reading = import(&engine, &file, &[("header", "false")]).await.unwrap().reading.unwrap();
        assert_eq!(types(&reading), columns, "{text:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn backslashes_before_quotes_are_known_wherever_they_stand() {
    let (folder, engine) = engine().await;
    let session = admin(&engine);
    // More records than the dialect is looked for in.
    let plain: String = (0..5_000).map(|row| format!("{row},plain\n")).collect();
    for (late, expected) in [
        ("5000,\"say \\\"hi\\\"\"\n", "say \"hi\""),
        ("5000,\"{\\\"a\\\":1,\\\"b\\\":2}\"\n", "{\"a\":1,\"b\":2}"),
        // Of one file with both, what reads more fields as quoted is taken.
        ("4998,\"a \"\"b\"\"\"\n4999,\"c \"\"d\"\"\"\n5000,\"e \\\"f\\\"\"\n", "\"e \\\"f\\\"\""),
    ] {
        let file = write(folder.path(), "t.csv", format!("id,note\n{plain}{late}"));
        let outcome = import(&engine, &file, &[]).await.unwrap_or_else(|error| panic!("{late}: {error}"));
        assert_eq!(outcome.reading.unwrap().columns.len(), 2);
        assert_eq!(rows(&session, "SELECT note FROM t WHERE id = 5000").await.unwrap(), [[expected]]);
        let external = format!("SELECT note FROM read_csv('{}') WHERE id = 5000", file.display());
        assert_eq!(rows(&session, &external).await.unwrap(), [[expected]], "where it lies");
    }
    // Comments and apostrophes below those records are refused, with the option that says them.
    for (late, option, value, count) in
        [("# the end\n", "comment", "#", 5_000), ("5000,'say, hi'\n", "quote", "'", 5_001)]
    {
        let file = write(folder.path(), "t.csv", format!("id,note\n{plain}{late}"));
        let error = import(&engine, &file, &[]).await.unwrap_err().to_string();
        assert!(error.contains(&format!(", {option} ")), "{error}");
        assert_eq!(import(&engine, &file, &[(option, value)]).await.unwrap().rows, Some(count));
    }
}
