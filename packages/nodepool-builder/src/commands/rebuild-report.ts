import { styleText } from 'node:util';
import type { SettingsOf } from '@nodepool-builder/image-builder';
import { recordSchema, TEXT, TEXT_OR_NULL } from '../terms/record-schema.ts';

const STATES = ['identical', 'same-contents', 'different'] as const;

const TEXTS = { type: 'array', items: TEXT } as const;

/** Schema of the JSON of `rebuild --compare`. */
export const REBUILT_IMAGE = recordSchema({
  'image-id': { ...TEXT, description: 'Id of the image.' },
  'image-name': { ...TEXT, description: 'Name of the disk image.' },
  state: {
    enum: STATES,
    description:
      '`identical`: all files are equal; `same-contents`: the packages and the files inside the disk are equal; else `different`.',
  },
  inputs: {
    type: 'array',
    items: recordSchema({ name: TEXT, recorded: TEXT_OR_NULL, now: TEXT_OR_NULL, reason: TEXT_OR_NULL }),
    description:
      'Inputs that differ: `name`, value that is `recorded`, value `now`; null for a missing one. `reason` why the ' +
      'recorded one could not be had, if that was tried.',
  },
  files: {
    type: 'array',
    items: recordSchema({ format: TEXT, recorded: TEXT, now: TEXT_OR_NULL }),
    description: 'SHA-256 of each file that the build made: `format`, `recorded`, `now`.',
  },
  packages: {
    ...recordSchema({ added: TEXTS, removed: TEXTS, changed: TEXTS, reason: TEXT_OR_NULL }),
    description: '`added`, `removed` and `changed` packages; the `reason` if they could not be compared.',
  },
  contents: {
    ...recordSchema({ added: TEXTS, removed: TEXTS, changed: TEXTS, reason: TEXT_OR_NULL }),
    description: 'The same for paths inside the disk.',
  },
  log: { ...TEXT, description: 'Path of the log of the new build.' },
});

export type RebuiltImage = SettingsOf<typeof REBUILT_IMAGE>;

/** Packages or paths that differ. */
export type Changes = RebuiltImage['packages'];

export const NO_CHANGES: Changes = { added: [], removed: [], changed: [], reason: null };

export function isUnchanged({ added, removed, changed }: Changes): boolean {
  return added.length + removed.length + changed.length === 0;
}

/** Lines of each kind of difference on a terminal; --json has all. */
const MOST_LINES = 20;

const CONCLUSIONS: Readonly<Record<RebuiltImage['state'], string>> = {
  identical: 'the new image is identical, byte by byte',
  'same-contents': 'the new image has the same packages and the same files inside',
  different: 'the new image differs',
};

/** Lines for a terminal. */
export function linesOf({
  inputs,
  files,
  packages,
  contents,
  state,
  ...image
}: RebuiltImage): readonly string[] {
  return [
    ...section(
      'inputs',
      inputs.map(({ name, recorded, now, reason }) => {
        const why = reason === null ? '' : ` (${reason})`;
        return `${name}: ${recorded ?? 'none'} → ${now ?? 'none'}${why}`;
      }),
      'all inputs are as recorded',
    ),
    ...section(
      'files',
      files
        .filter((file) => file.recorded !== file.now)
        .map(({ format, recorded, now }) => `${format}: SHA-256 ${recorded} → ${now ?? 'none'}`),
      'all files are identical',
    ),
    ...section('packages', changeLines(packages), packages.reason ?? 'all packages are the same'),
    ...section(
      'contents',
      changeLines(contents),
      contents.reason ?? 'all files inside the disk are the same',
    ),
    `${styleText(state === 'different' ? 'yellow' : 'green', state, { stream: process.stdout })}: image ${image['image-id']}: ${CONCLUSIONS[state]}`,
  ];
}

function changeLines({ added, removed, changed }: Changes): readonly string[] {
  return [
    ...added.map((one) => `+ ${one}`),
    ...removed.map((one) => `- ${one}`),
    ...changed.map((one) => `* ${one}`),
  ];
}

function section(title: string, lines: readonly string[], otherwise: string): readonly string[] {
  if (lines.length === 0) return [`${title}: ${otherwise}`];
  const rest = lines.length - MOST_LINES;
  const shownLines = lines.slice(0, MOST_LINES).map((line) => `  ${line}`);
  return [`${title}:`, ...shownLines, ...(rest > 0 ? [`  … and ${rest} more; --json shows all`] : [])];
}
