import { dirname, resolve } from 'node:path';
import { ConfigurationError } from '../configuration/fault.ts';
import { parseDocument } from '../configuration/read-document.ts';
import { schemaFaults } from '../configuration/schema-faults.ts';
import type {
  LogFileTarget,
  LoggerSettings,
  LogOutput,
  LogThreshold,
  ReadLogSettings,
} from './log-settings.ts';
import { jsonFormat, LOG_LEVELS, type LogLevel, type RecordFormat, textFormat } from './record-format.ts';

/** The content of the file of `-l`. */
interface YamlLogSettings {
  readonly level?: LogLevel;
  readonly loggers?: Readonly<Record<string, LogThreshold>>;
  readonly outputs?: readonly YamlOutput[];
}

interface YamlOutput {
  readonly type: 'stderr' | 'file';
  readonly format?: FormatName;
  /** For type `file`. */
  readonly filename?: string;
  readonly 'max-size'?: number;
  readonly 'max-files'?: number;
}

type FormatName = keyof typeof FORMATS;

/** Formats by name. */
const FORMATS = { text: textFormat, json: jsonFormat };
FORMATS satisfies Record<string, RecordFormat>;

/** Default of `max-files`, which includes the current file. */
const DEFAULT_MAX_FILES = 7;

const LEVEL = { enum: LOG_LEVELS };
const FORMAT = { enum: Object.keys(FORMATS) };

const SCHEMA = {
  type: 'object',
  additionalProperties: false,
  properties: {
    level: LEVEL,
    loggers: { type: 'object', additionalProperties: { enum: [...LOG_LEVELS, 'silent'] } },
    outputs: {
      type: 'array',
      items: {
        type: 'object',
        additionalProperties: false,
        required: ['type'],
        properties: {
          type: { enum: ['stderr', 'file'] },
          format: FORMAT,
          filename: { type: 'string', minLength: 1 },
          'max-size': { type: 'integer', minimum: 1 },
          'max-files': { type: 'integer', minimum: 2 },
        },
        if: { properties: { type: { const: 'stderr' } } },
        else: { required: ['filename'] },
      },
    },
  },
};

/**
 * Parses level, loggers and outputs. File names are relative to the directory of the file.
 *
 * @throws ConfigurationError
 */
export function parseYamlSettings(file: string, text: string): ReadLogSettings {
  const document = parseDocument(file, text);
  const faults = schemaFaults(document, SCHEMA);
  if (faults.some(({ severity }) => severity === 'error')) throw new ConfigurationError(file, faults);
  const { level = 'info', loggers = {}, outputs = [{ type: 'stderr' }] } = document.value as YamlLogSettings;
  const named = Object.entries(loggers).map(([name, threshold]): [string, LoggerSettings] => [
    name,
    { level: threshold, outputs: [], propagate: true },
  ]);
  const root: LoggerSettings = {
    level,
    outputs: outputs.map((output) => toOutput(output, dirname(file))),
    propagate: true,
  };
  return { settings: { loggers: new Map([...named, ['', root]]) }, warnings: faults };
}

function toOutput(output: YamlOutput, directory: string): LogOutput {
  const format = FORMATS[output.format ?? 'text'];
  const { filename, 'max-size': maxBytes, 'max-files': files = DEFAULT_MAX_FILES } = output;
  if (output.type === 'stderr' || filename === undefined) return { target: { type: 'stderr' }, format };
  const target: LogFileTarget = {
    type: 'file',
    filename: resolve(directory, filename),
    ...(maxBytes !== undefined && { rotation: { by: 'size', maxBytes, backups: files - 1 } }),
  };
  return { target, format };
}
