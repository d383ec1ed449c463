import type { ZuulBuild } from './zuul-build.ts';

/** Which builds: successful last tries of a job. */
export interface BuildQuery {
  /** The short name: `opendev/system-config`, without the name of the Git server. */
  readonly project: string;
  /** Any of them. */
  readonly pipelines: readonly string[];
  readonly job: string;
  /** Default: any, and what is no branch too. */
  readonly branch?: string;
}

/**
 * Parameters that narrow down what is listed, but that old servers refuse: `complete` came with Zuul 4.7, `final`
 * with 4.0. Newest first.
 */
export const SERVER_GENERATIONS: readonly (readonly string[])[] = [['complete', 'final'], ['final'], []];

/** Which part of a list. */
export interface Section {
  readonly limit: number;
  readonly skip: number;
}

/**
 * The query of `…/builds`: a repeated parameter means any of its values.
 *
 * @param flags must not be repeated: Zuul answers 500
 */
export function buildParameters(
  query: BuildQuery,
  flags: readonly string[],
  { limit, skip }: Section,
): URLSearchParams {
  const parameters = new URLSearchParams({ project: query.project, job_name: query.job });
  for (const pipeline of query.pipelines) parameters.append('pipeline', pipeline);
  if (query.branch !== undefined) parameters.append('branch', query.branch);
  parameters.append('result', 'SUCCESS');
  for (const flag of flags) parameters.append(flag, 'true');
  parameters.append('limit', `${limit}`);
  parameters.append('skip', `${skip}`);
  return parameters;
}

/** Whether a build is one of these, whatever the server took a name for: it reads `*` as any text. */
export function matchesQuery(build: ZuulBuild, query: BuildQuery): boolean {
  return (
    build.project === query.project &&
    build.jobName === query.job &&
    query.pipelines.includes(build.pipeline) &&
    (query.branch === undefined || build.branch === query.branch) &&
    build.result === 'SUCCESS' &&
    build.final
  );
}
