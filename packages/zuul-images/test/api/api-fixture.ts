import type { TestContext } from 'node:test';
import { ZuulDouble, type ZuulDoubleOptions } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { RecordingLogger } from '../../../image-builder/test/recording-logger.ts';
import { ZuulApi, type ZuulApiOptions } from '../../src/api/zuul-api.ts';
import type { BuildQuery, ZuulBuild } from '../../src/api/zuul-build.ts';
import { ManualClock } from './manual-clock.ts';

/** The builds of the double, unless a test adds others. */
export const QUERY: BuildQuery = {
  project: 'opendev/system-config',
  pipelines: ['periodic', 'post'],
  job: 'build-ubuntu-noble-image',
};

/** A signal that never aborts. */
export const ON: AbortSignal = new AbortController().signal;

/** A Zuul that ends with the test. */
export async function startZuul(t: TestContext, options: ZuulDoubleOptions = {}): Promise<ZuulDouble> {
  const zuul = await ZuulDouble.start(options);
  t.after(() => zuul[Symbol.asyncDispose]());
  return zuul;
}

/** All builds of all pages. */
export async function allBuilds(api: ZuulApi, query: BuildQuery, signal: AbortSignal): Promise<ZuulBuild[]> {
  const builds: ZuulBuild[] = [];
  for await (const page of api.builds(query, signal)) builds.push(...page);
  return builds;
}

/** A client of an API, with a clock whose delays take no time. */
export class ApiFixture {
  readonly clock: ManualClock = new ManualClock();
  readonly logger: RecordingLogger = new RecordingLogger();
  readonly api: ZuulApi;

  constructor(zuul: ZuulDouble, options: Partial<ZuulApiOptions> = {}) {
    const { clock, logger } = this;
    this.api = new ZuulApi({
      apiUrl: zuul.url,
      tenant: 'example',
      logger,
      clock,
      random: () => 0,
      ...options,
    });
  }

  async builds(query: BuildQuery = QUERY, signal: AbortSignal = ON): Promise<readonly ZuulBuild[]> {
    return await allBuilds(this.api, query, signal);
  }

  async uuids(query: BuildQuery = QUERY): Promise<readonly string[]> {
    return (await this.builds(query)).map(({ uuid }) => uuid);
  }
}
