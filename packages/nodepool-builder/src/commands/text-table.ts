/** Formats a table without lines, with headings in capitals, as nodepool's commands do. */
export async function textTable(
  header: readonly string[],
  rows: readonly (readonly string[])[],
): Promise<string> {
  // Imported on demand: the daemon starts faster without it.
  const { getBorderCharacters, table } = await import('table');
  return table([[...header], ...rows.map((row) => [...row])], {
    border: getBorderCharacters('void'),
    columnDefault: { paddingLeft: 0, paddingRight: 2 },
    drawHorizontalLine: () => false,
  })
    .replaceAll(/(?<! ) +$/gm, '')
    .trimEnd();
}

/** Formats an age as nodepool does: `days:hours:minutes:seconds`. */
export function formatAge(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, '0')).join(':');
}
