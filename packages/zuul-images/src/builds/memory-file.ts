import { isImageFormat } from '@nodepool-builder/image-builder';
import { list, optionalText, record, text } from '../api/json-shape.ts';
import { ZuulError } from '../api/zuul-error.ts';
import { type BuildContent, type BuildMemory, NOTHING_SEEN, type RememberedBuild } from './build-memory.ts';

const VERSION = 1;

/** A memory as its file has it. */
export function memoryText({ newest, builds }: BuildMemory): string {
  return `${JSON.stringify({ version: VERSION, newest, builds: [...builds.values()] })}\n`;
}

/**
 * Reads what {@link memoryText} wrote and others may have touched; no text is the memory of nothing.
 *
 * @throws ZuulError `memory-damaged`
 */
export function parseMemory(content: string | undefined, path: string): BuildMemory {
  if (content === undefined) return NOTHING_SEEN;
  try {
    const file = record(JSON.parse(content), 'it');
    if (file.version !== VERSION) throw new Error(`its version is not ${VERSION}`);
    const builds = list(file.builds, 'builds').map(parseBuild);
    return {
      newest: file.newest === undefined ? undefined : parseAge(record(file.newest, 'newest')),
      builds: new Map(builds.map((build) => [build.uuid, build])),
    };
  } catch (cause) {
    throw new ZuulError(
      'memory-damaged',
      `${path} does not tell which builds were seen: ${(cause as Error).message}; remove it, and the newest image is fetched once more`,
      { cause },
    );
  }
}

function parseBuild(value: unknown): RememberedBuild {
  const build = record(value, 'a build');
  return {
    uuid: text(build.uuid, 'uuid'),
    ...parseAge(build),
    pipeline: text(build.pipeline, 'pipeline'),
    content: list(build.content, 'content').map(parseContent),
  };
}

function parseContent(value: unknown): BuildContent {
  const { format, url, sha256 } = record(value, 'a part of content');
  if (!isImageFormat(format)) throw new Error('format is no image format');
  const digest = optionalText(sha256, 'sha256');
  return { format, url: text(url, 'url'), ...(digest !== undefined && { sha256: digest }) };
}

function parseAge({
  endTime,
  id,
}: Readonly<Record<string, unknown>>): Pick<RememberedBuild, 'endTime' | 'id'> {
  if (!Number.isSafeInteger(endTime) || !Number.isSafeInteger(id)) {
    throw new Error('endTime or id is not a whole number');
  }
  // An earlier release stored ends in the future unchanged.
  return { endTime: Math.min(endTime as number, Date.now()), id: id as number };
}
