//! PDFs that come with messages, through every door that takes files.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::serve;

/// Returns a PDF with one page of this content, with a font `F`.
fn pdf(content: &str) -> Vec<u8> {
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /Font << /F 5 0 R >> >> >>";
    let font = "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>";
    file_of([page.into(), stream("", content.as_bytes()), font.into()])
}

/// Returns a PDF whose page is a picture.
fn scan(picture: &[u8]) -> Vec<u8> {
    let page = "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R \
         /Resources << /XObject << /P 5 0 R >> >> >>";
    let of_picture = "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceRGB /BitsPerComponent 8 \
         /Filter /DCTDecode ";
    file_of([page.into(), stream("", b"612 0 0 792 0 0 cm /P Do"), stream(of_picture, picture)])
}

fn stream(about: &str, content: &[u8]) -> Vec<u8> {
    let begin = format!("<< {about}/Length {} >>\nstream\n", content.len());
    [begin.as_bytes(), content, b"\nendstream"].concat()
}

/// Returns a file of a catalog, a tree of one page, and these objects, of which the first is the page.
fn file_of(objects: [Vec<u8>; 3]) -> Vec<u8> {
    let first = ["<< /Type /Catalog /Pages 2 0 R >>", "<< /Type /Pages /Kids [3 0 R] /Count 1 >>"];
    let mut file = b"%PDF-1.4\n".to_vec();
    let mut offsets = String::new();
    let objects: Vec<Vec<u8>> = first.into_iter().map(Vec::from).chain(objects).collect();
    for (number, object) in (1..).zip(&objects) {
        offsets += &format!("{:010} 00000 n \n", file.len());
        file.extend(format!("{number} 0 obj\n").bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let (count, begin) = (objects.len() + 1, file.len());
    file.extend(format!("xref\n0 {count}\n0000000000 65535 f \n{offsets}").bytes());
    file.extend(format!("trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{begin}\n%%EOF\n").bytes());
    file
}

/// The scripted model answers so where the message speaks of a night, which only the file does.
const ANSWER: &str = "The nights were quiet.";

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_pdf_is_part_of_its_message() {
    let server = serve().await;
    let file = STANDARD.encode(pdf("BT /F 12 Tf 72 700 Td (Report of the ni) Tj (ght shift) Tj ET"));
    let uri = format!("data:application/pdf;base64,{file}");
    let text = "What does it say?";
    let said = |text: serde_json::Value, part: serde_json::Value| json!([{ "role": "user", "content": [text, part] }]);
    let plain = json!({ "type": "text", "text": text });
    let source = json!({ "type": "base64", "media_type": "application/pdf", "data": file });
    let binary = json!({ "type": "binary", "mimeType": "application/pdf", "filename": "report.pdf", "data": file });
    let data = json!({ "type": "data", "value": file, "mimeType": "application/pdf" });
    let in_1_0 = json!({ "raw": file, "mediaType": "application/pdf", "filename": "report.pdf" });
    let in_0_3 =
        json!({ "kind": "file", "file": { "bytes": file, "mimeType": "application/pdf", "name": "report.pdf" } });
    let ag_ui = |part| {
        let message = json!({ "id": "m1", "role": "user", "content": [plain, part] });
        json!({ "threadId": "t1", "runId": "r1", "messages": [message] })
    };
    let a2a = |method: &str, role: &str, parts| {
        let message = match method {
            // Version 0.3 says of each object what it is.
            "message/send" => json!({ "kind": "message", "messageId": "m1", "role": role, "parts": parts }),
            _ => json!({ "messageId": "m1", "role": role, "parts": parts }),
        };
        json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": { "message": message } })
    };
    for (path, body) in [
        (
            "/v1/responses",
            json!({ "model": "querent", "input": said(
                json!({ "type": "input_text", "text": text }),
                json!({ "type": "input_file", "filename": "report.pdf", "file_data": uri }),
            ) }),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "querent", "messages": said(
                plain.clone(),
                json!({ "type": "file", "file": { "filename": "report.pdf", "file_data": uri } }),
            ) }),
        ),
        (
            "/v1/messages",
            json!({ "model": "querent", "max_tokens": 500, "messages": said(
                plain.clone(),
                json!({ "type": "document", "title": "report.pdf", "source": source }),
            ) }),
        ),
        ("/ag-ui", ag_ui(json!({ "type": "document", "source": data }))),
        ("/ag-ui", ag_ui(binary)),
        ("/ag-ui", ag_ui(json!({ "type": "document", "source": { "type": "url", "value": uri } }))),
        ("/a2a", a2a("SendMessage", "ROLE_USER", json!([{ "text": text }, in_1_0]))),
        ("/a2a", a2a("message/send", "user", json!([{ "kind": "text", "text": text }, in_0_3]))),
    ] {
        let reply = server.post(path, &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text);
        assert!(reply.text.contains(ANSWER), "{path}: {}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_scan_is_shown_as_the_pictures_that_its_pages_are() {
    let server = serve().await;
    let jpeg = b"\xff\xd8\xff\xe0 a picture \xff\xd9";
    let part = json!({ "type": "input_file", "filename": "a.pdf", "file_data": STANDARD.encode(scan(jpeg)) });
    let text = json!({ "type": "input_text", "text": "thanks" });
    let body = json!({ "model": "querent", "input": [{ "role": "user", "content": [text, part] }] });
    let reply = server.post("/v1/responses", &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 200, "{}", reply.text);
    let asked = server.model.requests().pop().unwrap().messages;
    let pictures: Vec<_> = asked.iter().flat_map(|message| &message.images).collect();
    assert_eq!(pictures.len(), 1, "{asked:?}");
    assert_eq!((pictures[0].media_type.as_str(), &pictures[0].data), ("image/jpeg", &STANDARD.encode(jpeg)));
    // What is no JPEG is not shown.
    let part = json!({ "type": "input_file", "filename": "a.pdf", "file_data": STANDARD.encode(scan(b"GIF89a")) });
    let body = json!({ "model": "querent", "input": [{ "role": "user", "content": [part] }] });
    let reply = server.post("/v1/responses", &body, Some("ann-tok")).await;
    assert_eq!(reply.status, 400, "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pdf_that_is_not_read_is_refused_with_the_reason() {
    let server = serve().await;
    let mut encrypted = pdf("BT /F 12 Tf (night) Tj ET");
    encrypted.extend(b"% << /Encrypt 9 0 R >>\n");
    for (file, reason) in [
        (pdf("0 0 100 100 re f"), "send its pages as images"),
        (encrypted, "encrypted"),
        (b"%PDF-1.7 and nothing else".to_vec(), "damaged"),
    ] {
        let part = json!({ "type": "input_file", "filename": "a.pdf", "file_data": STANDARD.encode(file) });
        let body = json!({ "model": "querent", "input": [{ "role": "user", "content": [part] }] });
        let reply = server.post("/v1/responses", &body, Some("ann-tok")).await;
        assert_eq!(reply.status, 400, "{reason}: {}", reply.text);
        let message = reply.json()["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("`a.pdf`") && message.contains(reason), "{reason}: {message}");
    }
}
