import { JsonReader, utcTime } from '@nodepool-builder/image-builder/module-kit';
import { artifactUrl } from '../builds/artifact-url.ts';
import type { ZuulArtifact, ZuulBuild } from './zuul-build.ts';

/** Zuul sends null for unknown values. */
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const TIME_OR_NULL = { type: ['string', 'null'], format: 'time' } as const;

const CHANGE = { project: TEXT_OR_NULL, branch: TEXT_OR_NULL } as const;

const IDENTITY = new JsonReader({
  type: 'object',
  required: ['uuid'],
  properties: { uuid: { type: 'string' } },
});

const BUILD = new JsonReader({
  type: 'object',
  required: ['job_name'],
  properties: {
    ...CHANGE,
    /** From Zuul 10 on an object; before, a text such as `refs/heads/master`. */
    ref: { type: ['object', 'string', 'null'], properties: CHANGE },
    job_name: { type: 'string' },
    result: TEXT_OR_NULL,
    start_time: TIME_OR_NULL,
    end_time: TIME_OR_NULL,
    pipeline: TEXT_OR_NULL,
    log_url: TEXT_OR_NULL,
    artifacts: { type: ['array', 'null'] },
  },
});

const ARTIFACT = new JsonReader({
  type: 'object',
  required: ['name', 'url'],
  properties: {
    name: { type: 'string' },
    url: { type: 'string' },
    metadata: { type: ['object', 'null'] },
  },
});

/**
 * Reads one build of `…/builds`. The change of a build is in `ref` from Zuul 10 on; before, beside the other fields.
 *
 * @throws Error that names the invalid field
 */
export function parseBuild(value: unknown): ZuulBuild {
  const { uuid } = IDENTITY.check(value);
  try {
    const build = BUILD.check(value);
    const { _id: id, final } = value as Readonly<Record<string, unknown>>;
    const { project, branch } = typeof build.ref === 'object' && build.ref !== null ? build.ref : build;
    const { result, start_time: start, end_time: end } = build;
    return {
      uuid,
      id: rowNumber(id),
      jobName: build.job_name,
      ...(typeof result === 'string' && { result }),
      final: final !== false,
      ...(typeof start === 'string' && { startTime: utcTime(start) }),
      ...(typeof end === 'string' && { endTime: utcTime(end) }),
      project: project ?? '',
      ...(typeof branch === 'string' && { branch }),
      pipeline: build.pipeline ?? '',
      ...parseArtifacts(build.artifacts ?? [], build.log_url ?? undefined),
    };
  } catch (cause) {
    throw new Error(`of build ${uuid}, ${(cause as Error).message}`, { cause });
  }
}

/** Declared as a string, and sent as a number. */
function rowNumber(value: unknown): number {
  if (value === undefined || value === null) return 0;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new Error('_id is not a whole number');
  return number;
}

function parseArtifacts(
  items: readonly unknown[],
  logUrl: string | undefined,
): Pick<ZuulBuild, 'artifacts' | 'unusableArtifacts'> {
  const artifacts: ZuulArtifact[] = [];
  const unusableArtifacts: string[] = [];
  for (const item of items) {
    try {
      const { name, url, metadata } = ARTIFACT.check(item);
      artifacts.push({ name, url: artifactUrl(url, logUrl), metadata: metadata ?? {} });
    } catch (error) {
      const name: unknown = Object(item).name;
      unusableArtifacts.push(`artifact ${JSON.stringify(name)}: ${(error as Error).message}`);
    }
  }
  return { artifacts, unusableArtifacts };
}
