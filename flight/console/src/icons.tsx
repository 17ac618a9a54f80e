// The icons, drawn here: the page loads nothing from elsewhere.

const PATHS = {
  brand: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13Zm4.8 11.3L20 20",
  ask: "M4 5h16v11H9l-5 4V5Zm4 4h8M8 12h5",
  query: "m5 7 5 5-5 5m7 0h7",
  catalog: "M5 6c0-1.7 3.1-3 7-3s7 1.3 7 3-3.1 3-7 3-7-1.3-7-3Zm0 0v12c0 1.7 3.1 3 7 3s7-1.3 7-3V6M5 12c0 1.7 3.1 3 7 3s7-1.3 7-3",
  import: "M12 3v12m0 0 4.5-4.5M12 15l-4.5-4.5M4 17v3h16v-3",
  activity: "M3 12h4l3-8 4 16 3-8h4",
  settings: "M4 7h9m5 0h2M4 17h2m5 0h9M13 4.5v5M8.500 14.500v5",
  search: "M10.5 4a6.500 6.500 0 1 0 0 13 6.500 6.500 0 0 0 0-13Zm4.800 11.300L20 20",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8Zm0-5v2m0 14v2M3 12h2m14 0h2M5.600 5.600 7 7m10 10 1.400 1.400M5.600 18.400 7 17M17 7l1.400-1.400",
  moon: "M20 14.500A8.500 8.500 0 0 1 9.500 4a8.500 8.500 0 1 0 10.500 10.500Z",
};

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true" fill="none" stroke="currentColor" stroke-width="1.8"
      stroke-linecap="round" stroke-linejoin="round">
      <path d={PATHS[name]} />
    </svg>
  );
}
