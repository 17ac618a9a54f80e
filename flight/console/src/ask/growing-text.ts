// A text that grows at its end. What came before is not taken apart again, and lines that do not change stay the same objects.

export interface Line {
  from: number;
  to: number;
  text: string;
}

export class GrowingText {
  /** Its characters; places in the text count them. */
  readonly chars: string[] = [];
  readonly lines: Line[] = [{ from: 0, to: 0, text: "" }];
  private text = "";

  /** Takes the text as it is now. */
  become(text: string): void {
    if (text === this.text) return;
    // Half a character at the end is another one with what follows.
    if (!text.startsWith(this.text) || /[\ud800-\udbff]$/.test(this.text)) {
      this.chars.length = this.lines.length = 0;
      this.text = "";
    }
    let from = this.lines.pop()?.from ?? 0;
    const endLine = () => this.lines.push({ from, to: this.chars.length, text: this.chars.slice(from).join("") });
    for (const char of text.slice(this.text.length)) {
      if (char === "\n") {
        endLine();
        from = this.chars.length + 1;
      }
      this.chars.push(char);
    }
    endLine();
    this.text = text;
  }
}
