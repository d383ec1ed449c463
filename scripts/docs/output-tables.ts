import type { OUTPUTS } from '../../packages/nodepool-builder/src/commands/output-schemas.ts';
import { markdownTable } from '../markdown.ts';

/** Tables of the keys in the JSON of the commands, as Markdown. */
export function outputTables(outputs: typeof OUTPUTS): string {
  return Object.entries(outputs)
    .map(([name, { command, isList, record }]) => {
      const file = `schemas/${name}.schema.json`;
      const rows = Object.entries(record.properties).map(([key, schema]) => [
        `\`${key}\``,
        typeOf(schema),
        schema.description ?? '',
      ]);
      const what = isList ? 'a list of records' : 'one record';
      return [
        `### ${command}`,
        `\`nodepool-builder ${command} --json\` prints ${what}; schema: [\`${file}\`](../packages/nodepool-builder/${file})`,
        markdownTable(['key', 'value', 'meaning'], rows),
      ].join('\n\n');
    })
    .join('\n\n');
}

type Schema = (typeof OUTPUTS)[string]['record']['properties'][string];

function typeOf({ type, enum: values, format }: Schema): string {
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(', ');
  const names = [type ?? []]
    .flat()
    .map((name) => (name === 'string' && format !== undefined ? 'time' : name));
  return names.join(' or ');
}
