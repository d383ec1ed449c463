/** Returns a Markdown table. */
export function markdownTable(header: readonly string[], rows: readonly (readonly string[])[]): string {
  return [header, header.map(() => '---'), ...rows]
    .map((cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}

/**
 * Returns a page with the text between two of its lines replaced.
 *
 * @throws Error if the page does not contain one of the lines
 */
export function replaceSection(page: string, begin: string, end: string, text: string): string {
  const from = page.indexOf(begin);
  const to = page.indexOf(end, from);
  if (from === -1 || to === -1) throw new Error(`the page does not contain "${begin}" followed by "${end}"`);
  return `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
}
