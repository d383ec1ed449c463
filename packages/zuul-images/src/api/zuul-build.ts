import { objectOf, TEXT, utcTime } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { artifactUrl } from '../download/artifact-url.ts';
import type { ZuulSettings } from '../zuul-settings.ts';

/** Settings that select the successful builds to list. */
export type BuildQuery = Pick<ZuulSettings, 'project' | 'pipelines' | 'job' | 'branch'>;

/** Artifact that a build returned with `zuul_return`. */
export interface ZuulArtifact {
  readonly name: string;
  /** Absolute http, https or s3 URL. Its query may be a signature and must never be logged. */
  readonly url: string;
  /** Any content, as the job returned it. */
  readonly metadata: Readonly<Record<string, unknown>>;
}

/** A change, branch or tag, with Zuul's names. */
export interface ZuulChange {
  readonly change?: string;
  readonly patchset?: string;
  /** `refs/heads/master`. */
  readonly ref?: string;
  /** Commit of a branch or tag. */
  readonly newrev?: string;
  readonly ref_url?: string;
}

/** A build, from either generation of the API. */
export interface ZuulBuild {
  readonly uuid: string;
  /** Zuul's row number, in the order of the starts. Zero if the server is too old to send it. */
  readonly id: number;
  readonly jobName: string;
  /** `SUCCESS`, `FAILURE` and so on; absent while the build runs. */
  readonly result?: string;
  /** True if this is the last attempt. False for an attempt that was retried. */
  readonly final: boolean;
  /** Milliseconds since 1970. */
  readonly startTime?: number;
  /** Milliseconds since 1970. */
  readonly endTime?: number;
  /** Short name: `opendev/system-config`. */
  readonly project: string;
  /** Branch; absent for a ref that is not a branch, such as a tag. */
  readonly branch?: string;
  readonly pipeline: string;
  /** The change that it built; absent if Zuul reports none. */
  readonly change?: ZuulChange;
  readonly artifacts: readonly ZuulArtifact[];
  /** Ignored artifacts, each with the reason. */
  readonly unusableArtifacts: readonly string[];
}

/** Zuul sends null for unknown values. */
const TEXT_OR_NULL = { type: ['string', 'null'] } as const;
const TIME_OR_NULL = { type: ['string', 'null'], format: 'date-time' } as const;

const CHANGE = { project: TEXT_OR_NULL, branch: TEXT_OR_NULL } as const;

const BUILD = new JsonReader(
  objectOf(
    { uuid: TEXT, job_name: TEXT },
    {
      ...CHANGE,
      /** The published schema says string, but Zuul sends a number. */
      _id: { type: ['integer', 'string', 'null'] },
      /** An object since Zuul 10, before that a string such as `refs/heads/master`. */
      ref: { type: ['object', 'string', 'null'], properties: CHANGE },
      result: TEXT_OR_NULL,
      final: { type: ['boolean', 'null'] },
      start_time: TIME_OR_NULL,
      end_time: TIME_OR_NULL,
      pipeline: TEXT_OR_NULL,
      log_url: TEXT_OR_NULL,
      artifacts: { type: ['array', 'null'] },
    },
  ),
);

const ARTIFACT = new JsonReader(
  objectOf({ name: TEXT, url: TEXT }, { metadata: { type: ['object', 'null'] } }),
);

/**
 * Reads one build of `…/builds`. The change of a build is in `ref` since Zuul 10, before that among the other fields.
 *
 * @throws Error that names the invalid field
 */
export function parseBuild(value: unknown): ZuulBuild {
  try {
    const build = BUILD.check(value);
    const source = typeof build.ref === 'object' && build.ref !== null ? build.ref : build;
    const { project, branch } = source;
    const change = changeOf(source);
    const { uuid, _id: row, result, start_time: start, end_time: end } = build;
    const id = Number(row ?? 0);
    if (!Number.isSafeInteger(id)) throw new Error('_id is not a whole number');
    return {
      uuid,
      id,
      jobName: build.job_name,
      ...(typeof result === 'string' && { result }),
      final: build.final !== false,
      ...(typeof start === 'string' && { startTime: utcTime(start) }),
      ...(typeof end === 'string' && { endTime: utcTime(end) }),
      project: project ?? '',
      ...(typeof branch === 'string' && { branch }),
      pipeline: build.pipeline ?? '',
      ...(change !== undefined && { change }),
      ...parseArtifacts(build.artifacts ?? [], build.log_url ?? undefined),
    };
  } catch (cause) {
    const uuid: unknown = Object(value).uuid;
    const place = typeof uuid === 'string' ? `of build ${uuid}, ` : '';
    throw new Error(place + (cause as Error).message, { cause });
  }
}

const CHANGE_FIELDS: ReadonlySet<string> = new Set(['change', 'patchset', 'ref', 'newrev', 'ref_url']);

/** Reads fields that are only shown. A value of another type counts as unknown. */
function changeOf(source: object): ZuulChange | undefined {
  const found = Object.entries(source).flatMap(([name, value]: [string, unknown]) => {
    const isShown = typeof value === 'string' || typeof value === 'number';
    return isShown && CHANGE_FIELDS.has(name) ? [[name, `${value}`]] : [];
  });
  return found.length === 0 ? undefined : (Object.fromEntries(found) as ZuulChange);
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
