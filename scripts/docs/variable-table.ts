import type { INHERITED_VARIABLES } from '@nodepool-builder/image-builder/module-kit';
import { markdownTable } from '../markdown.ts';

/** Table of the variables that builds always get, as Markdown. */
export function variableTable(variables: typeof INHERITED_VARIABLES): string {
  const rows = variables.map(({ purpose, names }) => [purpose, variableList(names)]);
  return markdownTable(['for', 'variables'], rows);
}

/** Names of variables, as Markdown. */
export function variableList(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(', ');
}
