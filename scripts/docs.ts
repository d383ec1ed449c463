/** Writes the generated parts of the pages in docs/, and the schema for editors: `npm run docs`. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { DIB_VARIABLES, INHERITED_VARIABLES } from '@nodepool-builder/image-builder/internal';
import { PACKETS } from '../packages/gearman-node/src/packets.ts';
import { createProgram } from '../packages/nodepool-builder/src/commands/main.ts';
import { OUTPUTS, outputSchemas } from '../packages/nodepool-builder/src/commands/output-schemas.ts';
import { jsonSchema } from '../packages/nodepool-builder/src/configuration/schema.ts';
import { EVENT_SCHEMA } from '../packages/nodepool-builder/src/daemon/notifications/event.ts';
import { EXIT_CODES } from '../packages/nodepool-builder/src/terms/exit-codes.ts';
import { ALL_MODULES as MODULES } from './all-modules.ts';
import { configurationSections } from './docs/configuration-tables.ts';
import { exitCodeTable } from './docs/exit-code-table.ts';
import { manPage } from './docs/man-page.ts';
import { outputTables, recordTable } from './docs/output-tables.ts';
import { packetTable } from './docs/packet-table.ts';
import { variableList, variableTable } from './docs/variable-table.ts';
import { replaceSection } from './markdown.ts';

const GENERATED: readonly (readonly [page: string, section: string, text: string])[] = [
  ...configurationSections(MODULES),
  ['command-line.md', 'exit codes', exitCodeTable(EXIT_CODES)],
  ['command-line.md', 'JSON', outputTables(OUTPUTS)],
  ['configuration.md', 'variables', variableTable(INHERITED_VARIABLES)],
  ['configuration.md', 'public variables', variableList(DIB_VARIABLES)],
  ['notifications.md', 'event', recordTable(EVENT_SCHEMA)],
  ['gearman-protocol.md', 'tables', packetTable(PACKETS)],
];

for (const [name, section, text] of GENERATED) {
  const page = join(import.meta.dirname, '../docs', name);
  const [begin, end] = [
    `<!-- begin of ${section}: written by npm run docs -->`,
    `<!-- end of ${section} -->`,
  ];
  await writeFile(page, replaceSection(await readFile(page, 'utf8'), begin, end, `\n${text}\n`));
}

const SCHEMAS = {
  'nodepool.schema.json': jsonSchema(MODULES),
  ...outputSchemas(),
};
for (const [name, schema] of Object.entries(SCHEMAS)) {
  const schemaFile = join(import.meta.dirname, '../packages/nodepool-builder', name);
  await writeFile(schemaFile, JSON.stringify(schema));
  execFileSync('biome', ['format', '--write', schemaFile]);
}

const page = join(import.meta.dirname, '../packages/nodepool-builder/man/nodepool-builder.1');
await mkdir(dirname(page), { recursive: true });
await writeFile(page, manPage(await createProgram(), EXIT_CODES));
