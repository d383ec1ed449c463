import { listBuilds } from '../../../../test/fixtures/zuul/build-list.ts';
import type { BuildTable } from '../../../../test/fixtures/zuul/build-table.ts';
import { ZUUL_RELEASES } from '../../../../test/fixtures/zuul/zuul-release.ts';
import { buildParameters, matchesQuery, type ZuulApi } from '../../src/api/zuul-api.ts';
import { parseBuild } from '../../src/api/zuul-build.ts';

/** Lists builds without HTTP. */
export function directly({ rows }: BuildTable): Pick<ZuulApi, 'builds'> {
  return {
    async *builds(query) {
      for (let skip = 0; ; skip += 50) {
        const parameters = buildParameters(query, ['complete', 'final'], { skip, limit: 50 });
        const response = listBuilds(rows, parameters, ZUUL_RELEASES['11.3']);
        const page = 'builds' in response ? response.builds : [];
        yield page.map(parseBuild).filter((build) => matchesQuery(build, query));
        if (page.length < 50) return;
      }
    },
  };
}
