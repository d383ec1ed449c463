/** Writes the generated parts of the pages in docs/, and the schema for editors: `npm run docs`. */
import { execFileSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PACKETS } from '@nodepool-builder/gearman-node';
import { CONFIGURATION_SCHEMA } from '../packages/nodepool-builder/src/configuration/schema.ts';
import { configurationTables } from './docs/configuration-tables.ts';
import { jsonSchema } from './docs/json-schema.ts';
import { packetTable } from './docs/packet-table.ts';
import { replaceSection } from './markdown.ts';

const [begin, end] = ['<!-- begin of tables: written by npm run docs -->', '<!-- end of tables -->'];

const GENERATED: Readonly<Record<string, string>> = {
  'configuration.md': configurationTables(CONFIGURATION_SCHEMA),
  'gearman-protocol.md': packetTable(PACKETS),
};

for (const [name, tables] of Object.entries(GENERATED)) {
  const page = join(import.meta.dirname, '../docs', name);
  await writeFile(page, replaceSection(await readFile(page, 'utf8'), begin, end, `\n${tables}\n`));
}

const schemaFile = join(import.meta.dirname, '../packages/nodepool-builder/nodepool.schema.json');
await writeFile(schemaFile, JSON.stringify(jsonSchema(CONFIGURATION_SCHEMA)));
execFileSync('biome', ['format', '--write', schemaFile]);
