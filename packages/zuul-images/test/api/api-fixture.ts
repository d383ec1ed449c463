import { RecordingLogger } from '../../../../test/fixtures/recording-logger.ts';
import { QUERY } from '../../../../test/fixtures/zuul/start-zuul.ts';
import type { ZuulDouble } from '../../../../test/fixtures/zuul/zuul-double.ts';
import { ZuulApi, type ZuulApiOptions } from '../../src/api/zuul-api.ts';
import type { BuildQuery, ZuulBuild } from '../../src/api/zuul-build.ts';
import { ManualClock } from './manual-clock.ts';

/** A signal that never aborts. */
export const ON: AbortSignal = new AbortController().signal;

/** Returns all builds of all pages. */
export async function allBuilds(api: ZuulApi, query: BuildQuery, signal: AbortSignal): Promise<ZuulBuild[]> {
  const builds: ZuulBuild[] = [];
  for await (const page of api.builds(query, signal)) builds.push(...page);
  return builds;
}

/** Creates an API client with a clock whose delays take no time. */
export class ApiFixture {
  readonly clock: ManualClock = new ManualClock();
  readonly logger: RecordingLogger = new RecordingLogger();
  readonly api: ZuulApi;

  constructor(zuul: ZuulDouble, options: Partial<ZuulApiOptions> = {}) {
    const { clock, logger } = this;
    this.api = new ZuulApi({
      apiUrl: `${zuul.url}t/example`,
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
