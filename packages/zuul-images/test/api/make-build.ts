import type { ZuulBuild } from '../../src/api/zuul-build.ts';

/** Returns a successful build. */
export function makeBuild(more: Partial<ZuulBuild> = {}): ZuulBuild {
  const id = more.id ?? 1;
  return {
    uuid: `build-${id}`,
    id,
    jobName: 'build-ubuntu-noble-image',
    result: 'SUCCESS',
    final: true,
    startTime: id * 1000,
    endTime: id * 1000 + 500,
    project: 'opendev/system-config',
    branch: 'master',
    pipeline: 'periodic',
    artifacts: [],
    unusableArtifacts: [],
    ...more,
  };
}
