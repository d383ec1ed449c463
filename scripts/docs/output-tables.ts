import type { OUTPUTS } from '../../packages/nodepool-builder/src/commands/output-schemas.ts';
import type { RecordSchema } from '../../packages/nodepool-builder/src/terms/record-schema.ts';
import { markdownTable } from '../markdown.ts';

/** Tables of the keys in the JSON of the commands, as Markdown. */
export function outputTables(outputs: typeof OUTPUTS): string {
  return Object.entries(outputs)
    .map(([name, { command, isList, record }]) => {
      const file = `schemas/${name}.schema.json`;
      const what = isList ? 'a list of records' : 'one record';
      return [
        `### ${command}`,
        `\`nodepool-builder ${command} --json\` prints ${what}; schema: [\`${file}\`](../packages/nodepool-builder/${file})`,
        recordTable(record),
      ].join('\n\n');
    })
    .join('\n\n');
}

/** Table of the keys of a record. */
export function recordTable({ properties }: RecordSchema): string {
  const rows = Object.entries(properties).map(([key, schema]) => [
    `\`${key}\``,
    typeOf(schema),
    schema.description ?? '',
  ]);
  return markdownTable(['key', 'value', 'meaning'], rows);
}

type Schema = RecordSchema['properties'][string];

function typeOf({ type, enum: values, format }: Schema): string {
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(', ');
  const names = [type ?? []]
    .flat()
    .map((name) => (name === 'string' && format !== undefined ? 'time' : name));
  return names.join(' or ');
}
