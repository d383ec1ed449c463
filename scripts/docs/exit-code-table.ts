import type { EXIT_CODES } from '../../packages/nodepool-builder/src/terms/exit-codes.ts';
import { markdownTable } from '../markdown.ts';

/** Returns the table of exit codes as Markdown. */
export function exitCodeTable(exitCodes: typeof EXIT_CODES): string {
  const rows = Object.entries(exitCodes).map(([name, { code, meaning }]) => [String(code), name, meaning]);
  return markdownTable(['exit code', 'name', 'meaning'], rows);
}
