// A chart of rows by a Vega-Lite specification. The libraries are loaded when a chart is first shown; expressions are
// interpreted, since the page's policy lets no text become code.
import { useEffect, useRef, useState } from "preact/hooks";
import type { QuerentError } from "querent-client";
import type { View } from "vega";

import { asFailure } from "./api";
import { useCell } from "./cell";
import { saveAs } from "./download";
import { isDark, theme } from "./preferences";

export function Chart({ spec, rows }: { spec: object; rows: Record<string, unknown>[] }) {
  const place = useRef<HTMLDivElement>(null);
  const view = useRef<View | null>(null);
  const [failure, setFailure] = useState<QuerentError | null>(null);
  useCell(theme);
  const isForDark = isDark();
  useEffect(() => {
    let isCurrent = true;
    setFailure(null);
    draw(place.current!, spec, rows).then(
      (made) => {
        if (isCurrent) view.current = made;
        else made.finalize();
      },
      (error: unknown) => isCurrent && setFailure(asFailure(error)),
    );
    return () => {
      isCurrent = false;
      view.current?.finalize();
      view.current = null;
    };
  }, [spec, rows, isForDark]);
  const saveSvg = async () => {
    const svg = await view.current?.toSVG();
    if (svg) saveAs(new Blob([svg], { type: "image/svg+xml" }), "chart.svg");
  };
  const savePng = async () => {
    const canvas = (await view.current?.toCanvas(2)) as HTMLCanvasElement | undefined;
    canvas?.toBlob((blob) => blob && saveAs(blob, "chart.png"));
  };
  return (
    <>
      {failure && <p class="empty">The chart cannot be drawn: {failure.message} {failure.hint}</p>}
      <figure class="chart">
        <div ref={place} role="img" aria-label={titleOf(spec)} />
        <figcaption class="row" hidden={failure !== null}>
          <button class="link" onClick={() => void saveSvg()}>SVG</button>
          <button class="link" onClick={() => void savePng()}>PNG</button>
        </figcaption>
      </figure>
    </>
  );
}

async function draw(place: HTMLElement, spec: object, rows: Record<string, unknown>[]): Promise<View> {
  const [vega, { compile }, { expressionInterpreter }] = await Promise.all([
    import("vega"),
    import("vega-lite"),
    import("vega-interpreter"),
  ]);
  const [text, line] = isDark() ? ["#c3cbdd", "#303848"] : ["#3a4358", "#d9dde6"];
  const sized = {
    width: Math.max(240, Math.min(760, place.clientWidth - 8)),
    height: 260,
    autosize: { type: "fit", contains: "padding" },
    ...spec,
    data: { name: "table", values: rows },
    config: {
      background: "transparent",
      view: { stroke: line },
      axis: { labelColor: text, titleColor: text, gridColor: line, domainColor: line, tickColor: line },
      legend: { labelColor: text, titleColor: text },
      title: { color: text },
      mark: { color: isDark() ? "#a5a3ff" : "#4f46e5" },
    },
  };
  const compiled = compile(sized as never).spec;
  const view = new vega.View(vega.parse(compiled, undefined, { ast: true } as never), {
    renderer: "svg",
    container: place,
    hover: true,
    expr: expressionInterpreter,
  } as never);
  return view.runAsync();
}

function titleOf(spec: object): string {
  const { title, description } = spec as { title?: unknown; description?: unknown };
  const said = [title, description].find((part) => typeof part === "string");
  return typeof said === "string" ? `Chart: ${said}` : "Chart of the rows";
}
