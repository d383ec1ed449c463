import { artifactUrl } from '../builds/artifact-url.ts';
import { list, optionalText, record, text } from './json-shape.ts';
import type { ZuulArtifact, ZuulBuild } from './zuul-build.ts';

/**
 * Reads one build of `…/builds`. From Zuul 10 on, what a build is about lies under `ref`; before, beside the rest.
 *
 * @throws Error that names the field at fault
 */
export function parseBuild(value: unknown): ZuulBuild {
  const build = record(value, 'the build');
  const { _id: id } = build;
  const uuid = text(build.uuid, 'uuid');
  try {
    const ref = build.ref !== null && typeof build.ref === 'object' ? record(build.ref, 'ref') : build;
    const result = optionalText(build.result, 'result');
    const startTime = time(build.start_time, 'start_time');
    const endTime = time(build.end_time, 'end_time');
    const branch = optionalText(ref.branch, 'branch');
    return {
      uuid,
      id: rowNumber(id),
      jobName: text(build.job_name, 'job_name'),
      ...(result !== undefined && { result }),
      final: build.final !== false,
      ...(startTime !== undefined && { startTime }),
      ...(endTime !== undefined && { endTime }),
      project: optionalText(ref.project, 'project') ?? '',
      ...(branch !== undefined && { branch }),
      pipeline: optionalText(build.pipeline, 'pipeline') ?? '',
      ...parseArtifacts(build.artifacts, optionalText(build.log_url, 'log_url')),
    };
  } catch (cause) {
    throw new Error(`of build ${uuid}, ${(cause as Error).message}`, { cause });
  }
}

/** Declared to be a string, and sent as a number. */
function rowNumber(value: unknown): number {
  if (value === undefined || value === null) return 0;
  const number = Number(value);
  if (!Number.isSafeInteger(number)) throw new Error('_id is not a whole number');
  return number;
}

/** Zuul's times are UTC and do not say so: without the Z they would be read as local time. */
function time(value: unknown, field: string): number | undefined {
  const written = optionalText(value, field);
  if (written === undefined) return undefined;
  const zoned = /(?:Z|[+-]\d\d:?\d\d)$/i.test(written) ? written : `${written}Z`;
  const milliseconds = Date.parse(zoned);
  if (Number.isNaN(milliseconds)) throw new Error(`${field} is not a time`);
  return milliseconds;
}

function parseArtifacts(
  value: unknown,
  logUrl: string | undefined,
): Pick<ZuulBuild, 'artifacts' | 'unusableArtifacts'> {
  const artifacts: ZuulArtifact[] = [];
  const unusableArtifacts: string[] = [];
  for (const item of list(value ?? [], 'artifacts')) {
    const name = (item as { name?: unknown } | null)?.name;
    try {
      const artifact = record(item, 'it');
      const url = artifactUrl(text(artifact.url, 'its URL'), logUrl);
      artifacts.push({
        name: text(name, 'its name'),
        url,
        metadata: record(artifact.metadata ?? {}, 'its metadata'),
      });
    } catch (error) {
      unusableArtifacts.push(`artifact ${JSON.stringify(name)}: ${(error as Error).message}`);
    }
  }
  return { artifacts, unusableArtifacts };
}
