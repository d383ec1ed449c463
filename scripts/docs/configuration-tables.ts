import type { SettingsSchema } from '@nodepool-builder/image-builder/module-kit';
import { ELSEWHERE } from '../../packages/nodepool-builder/src/yaml/schema-node.ts';
import { markdownTable } from '../markdown.ts';

/** The keys of a configuration as Markdown: a table for each mapping, the mappings within it after it. */
export function configurationTables(schema: SettingsSchema): string {
  return tablesOf('', schema).join('\n\n');
}

/** @param separator between the path and a key: `[].` if the path names a list */
function tablesOf(
  path: string,
  { properties = {}, required = [] }: SettingsSchema,
  separator = '.',
): string[] {
  const entries = Object.entries(properties);
  const read = entries.filter(([, node]) => node.description !== ELSEWHERE && node.not === undefined);
  const elsewhere = entries.filter(([, node]) => node.description === ELSEWHERE);
  const rows = read.map(([key, node]) => row(key, node, required.includes(key)));
  const left = elsewhere.map(([key]) => `\`${key}\``).join(', ');
  return [
    `### ${path === '' ? 'Top level' : `\`${path}\``}`,
    markdownTable(['key', 'type', 'default', 'meaning'], rows),
    ...(left === '' ? [] : [`Left to other parts of nodepool: ${left}.`]),
    ...read.flatMap(([key, node]) => {
      const name = path === '' ? key : `${path}${separator}${key}`;
      if (node.items?.properties !== undefined) return tablesOf(name, node.items, '[].');
      return node.properties === undefined ? [] : tablesOf(name, node);
    }),
  ];
}

function row(key: string, node: SettingsSchema, required: boolean): string[] {
  const standard = node.default === undefined ? '' : `\`${String(node.default)}\``;
  return [`\`${key}\``, typeOf(node), required ? '(required)' : standard, node.description ?? ''];
}

function typeOf({ type = [], enum: values }: SettingsSchema): string {
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(', ');
  // An empty value (null) means the same as a missing key.
  return (
    [type]
      .flat()
      .filter((name) => name !== 'null')
      .join(' or ') || 'any'
  );
}
