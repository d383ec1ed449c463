import type { ObjectSchema, SettingsSchema } from '../../packages/image-builder/src/settings-schema.ts';
import type { OUTPUTS } from '../../packages/nodepool-builder/src/commands/output-schemas.ts';
import { markdownTable } from '../markdown.ts';

/** Returns the table of commands with `--json` as Markdown, each with the JSON Schema of its output. */
export function outputTables(outputs: typeof OUTPUTS): string {
  const rows = Object.entries(outputs).map(([name, { command, isList, record }]) => {
    const file = `schemas/${name}.schema.json`;
    const keys = Object.keys(record.properties).map((key) => `\`${key}\``);
    return [
      `[\`${command}\`](../packages/nodepool-builder/${file})`,
      `${isList ? 'a list: ' : ''}${keys.join(', ')}`,
    ];
  });
  return markdownTable(['command, and its schema', 'keys'], rows);
}

/** Returns the table of a record's keys. */
export function recordTable({ properties }: ObjectSchema): string {
  const rows = Object.entries(properties).map(([key, schema]) => [
    `\`${key}\``,
    typeOf(schema),
    schema.description ?? '',
  ]);
  return markdownTable(['key', 'value', 'meaning'], rows);
}

function typeOf({ type, enum: values, format }: SettingsSchema): string {
  if (values !== undefined) return values.map((value) => `\`${String(value)}\``).join(', ');
  const names = [type ?? []]
    .flat()
    .map((name) => (name === 'string' && format !== undefined ? 'time' : name));
  return names.join(' or ');
}
