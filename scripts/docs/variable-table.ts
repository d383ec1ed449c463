import type { INHERITED_VARIABLES } from '@nodepool-builder/image-builder/internal';
import { markdownTable } from '../markdown.ts';

/** Returns the table of variables that every build gets, as Markdown. */
export function variableTable(variables: typeof INHERITED_VARIABLES): string {
  const rows = variables.map(({ purpose, names }) => [purpose, variableList(names)]);
  return markdownTable(['for', 'variables'], rows);
}

/** Returns variable names as Markdown. */
export function variableList(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
