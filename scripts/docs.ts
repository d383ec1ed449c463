/** Writes the tables of docs/configuration.md: `npm run docs`. */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { CONFIGURATION_SCHEMA } from '../packages/nodepool-builder/src/configuration/schema.ts';
import { configurationTables } from './docs/configuration-tables.ts';
import { replaceSection } from './markdown.ts';

const page = join(import.meta.dirname, '../docs/configuration.md');
const [begin, end] = ['<!-- begin of tables: written by npm run docs -->', '<!-- end of tables -->'];
const text = await readFile(page, 'utf8');
await writeFile(page, replaceSection(text, begin, end, `\n${configurationTables(CONFIGURATION_SCHEMA)}\n`));
