import { dirname, resolve } from 'node:path';
import type { SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { readSettings } from '@nodepool-builder/image-builder/internal';
import { isJournal } from '../terms/journal.ts';
import { checkSchema } from '../yaml/schema-diagnostics.ts';
import { parseYaml, readText } from '../yaml/yaml-document.ts';
import type { LoggerSettings, LogOutput, LogSettings, LogTarget, ReadLogSettings } from './log-settings.ts';
import { parsePythonSettings } from './python/python-settings.ts';
import { jsonFormat, LOG_LEVELS, type LogLevel, textFormat } from './record-format.ts';

/** Rotation of the log of a background process. */
const ROTATION = { by: 'size', maxBytes: 10 * 1024 * 1024, backups: 6 } as const;

/** Logger of build output, which is also in the build logs. */
const BUILD_OUTPUT = 'nodepool.image.build';

/**
 * Default settings: all records to standard error. The output of builds is excluded in the journal, where a trace of
 * thousands of lines would hide the rest.
 *
 * @param withBuilds include the output of builds in the journal
 */
export function defaultLogSettings(level: LogLevel, withBuilds = false): LogSettings {
  const loggers = everythingTo({ type: 'stderr' }, level);
  if (withBuilds || !isJournal('stderr')) return loggers;
  const quiet: LoggerSettings = { level: 'silent', outputs: [], propagate: true };
  return new Map([...loggers, [BUILD_OUTPUT, quiet]]);
}

/** Default settings of a background process: all records to a rotated file. */
export function backgroundLogSettings(level: LogLevel, filename: string): LogSettings {
  return everythingTo({ type: 'file', filename, rotation: ROTATION }, level);
}

function everythingTo(target: LogTarget, level: LogLevel): LogSettings {
  const outputs = [{ target, format: textFormat }];
  return new Map([['', { level, outputs, propagate: true }]]);
}

/**
 * Reads the file of `-l`: a logging configuration for Python, or our own in YAML.
 *
 * @throws ConfigurationError with file, line, reason and remedy; ImageError if `python3` is needed, and is missing or fails
 */
export async function readLogSettings(file: string): Promise<ReadLogSettings> {
  const text = await readText(file, '-l');
  const isIni = /^(?:[^\S\n]*(?:[#;][^\n]*)?\n)*[^\S\n]*\[/.test(text);
  return isIni ? await parsePythonSettings(file, text) : parseYamlSettings(file, text);
}

const FORMATS = { text: textFormat, json: jsonFormat };

const OUTPUT = {
  type: 'object',
  additionalProperties: false,
  required: ['type'],
  properties: {
    type: { enum: ['stderr', 'file'] },
    format: { enum: ['text', 'json'], default: 'text' },
    filename: { type: 'string', minLength: 1, format: 'path' },
    'max-size': { type: 'integer', minimum: 1 },
    // includes the current file
    'max-files': { type: 'integer', minimum: 2, default: 7 },
  },
  if: { properties: { type: { const: 'stderr' } } },
  else: { required: ['filename'] },
} as const satisfies SettingsSchema;

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    level: { enum: LOG_LEVELS, default: 'info' },
    loggers: { type: 'object', additionalProperties: { enum: [...LOG_LEVELS, 'silent'] } },
    outputs: { type: 'array', items: OUTPUT },
  },
} as const satisfies SettingsSchema;

/** Parses our own format. File names are relative to the directory of the file. */
function parseYamlSettings(file: string, text: string): ReadLogSettings {
  const document = parseYaml(file, text);
  const warnings = checkSchema(document, SCHEMA);
  const absolute = (path: string): string => resolve(dirname(file), path);
  const { level, loggers = {}, outputs } = readSettings(SCHEMA, document.value, absolute);
  const outputsOfRoot = outputs?.map(toOutput) ?? [
    { target: { type: 'stderr' } as const, format: textFormat },
  ];
  const named = Object.entries(loggers).map(([name, threshold]): [string, LoggerSettings] => [
    name,
    { level: threshold, outputs: [], propagate: true },
  ]);
  const root: LoggerSettings = { level, outputs: outputsOfRoot, propagate: true };
  return { settings: new Map([...named, ['', root]]), warnings };
}

function toOutput(output: SettingsOf<typeof OUTPUT>): LogOutput {
  const { filename, 'max-size': maxBytes, 'max-files': files } = output;
  const format = FORMATS[output.format];
  if (output.type === 'stderr' || filename === undefined) return { target: { type: 'stderr' }, format };
  const rotation =
    maxBytes === undefined ? {} : { rotation: { by: 'size', maxBytes, backups: files - 1 } as const };
  return { target: { type: 'file', filename, ...rotation }, format };
}
