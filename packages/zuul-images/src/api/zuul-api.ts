import type { Logger } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { ApiSession, type ApiSessionOptions } from './api-session.ts';
import { type ApiUrl, parseApiUrl } from './api-url.ts';
import { type BuildQuery, buildParameters, matchesQuery, SERVER_GENERATIONS } from './build-query.ts';
import { parseBuild } from './parse-build.ts';
import { findTenantApi, type TenantApi } from './tenant-api.ts';
import type { ZuulBuild } from './zuul-build.ts';
import { ZuulError } from './zuul-error.ts';

/** Builds per page: Zuul's own default. */
const PAGE_LENGTH = 50;

/** Settings of a {@link ZuulApi}. */
export interface ZuulApiOptions extends ApiSessionOptions {
  /** `zuul-images[].api-url`, in any of the forms that {@link parseApiUrl} takes. */
  readonly apiUrl: string;
  /** Required if the URL names no tenant and the API serves several. */
  readonly tenant?: string;
}

/** The REST API of Zuul, for one tenant. */
export class ZuulApi {
  /** Name in messages, without secrets. */
  readonly name: string;
  readonly #url: ApiUrl;
  readonly #session: ApiSession;
  readonly #logger: Logger;
  #tenantApi: TenantApi | undefined;
  /** Index into {@link SERVER_GENERATIONS}. */
  #generation = 0;

  /** @throws ZuulError `invalid-settings` */
  constructor({ apiUrl, tenant, ...options }: ZuulApiOptions) {
    const url = parseApiUrl(apiUrl);
    this.name = `Zuul API ${url.root}`;
    if (tenant !== undefined && url.tenant !== undefined && tenant !== url.tenant) {
      throw new ZuulError(
        'invalid-settings',
        `${this.name}: the api-url names the tenant "${url.tenant}", and the setting "${tenant}"; leave one out`,
      );
    }
    this.#url = { ...url, ...(tenant !== undefined && { tenant }) };
    this.#session = new ApiSession(this.name, options);
    this.#logger = options.logger;
  }

  /**
   * Lists the successful builds of a job page by page, ordered by start time, the latest first. Every filter is checked
   * here as well. A build that started earlier may end later: the first build is not always the newest.
   *
   * @throws ZuulError
   * @throws the signal's reason
   */
  async *builds(query: BuildQuery, signal: AbortSignal): AsyncGenerator<readonly ZuulBuild[]> {
    const seen = new Set<string>();
    for (let skip = 0; ; skip += PAGE_LENGTH) {
      const page = await this.#page(query, skip, signal);
      // builds that end between two requests shift the list, so that a page may start with known builds
      const fresh = page.filter(({ uuid }) => !seen.has(uuid));
      for (const { uuid } of fresh) seen.add(uuid);
      yield fresh.filter((build) => matchesQuery(build, query));
      if (page.length < PAGE_LENGTH) return;
      if (fresh.length === 0) {
        throw new ZuulError(
          'invalid-answer',
          `${this.name}: it lists the same builds on every page; check that what lies before it passes on the query`,
        );
      }
    }
  }

  async #page(query: BuildQuery, skip: number, signal: AbortSignal): Promise<readonly ZuulBuild[]> {
    this.#tenantApi ??= await findTenantApi(this.#session, this.#url, signal);
    const { base } = this.#tenantApi;
    for (let generation = this.#generation; ; generation += 1) {
      try {
        const flags = SERVER_GENERATIONS[generation] ?? [];
        const parameters = buildParameters(query, flags, { limit: PAGE_LENGTH, skip });
        const page = await this.#session.get(
          new URL(`builds?${parameters.toString()}`, base),
          parseBuilds,
          signal,
        );
        this.#generation = generation;
        return page;
      } catch (error) {
        if (!(error instanceof ZuulError) || error.status !== 404) throw error;
        const isLast = generation === SERVER_GENERATIONS.length - 1;
        if (error.code === 'tenant-unknown' || isLast) {
          // the server may have been replaced by another
          this.#tenantApi = undefined;
          this.#generation = 0;
          throw error;
        }
        this.#logger.debug(
          `${this.name}: it may be too old for the parameters of this request; asking with fewer`,
        );
      }
    }
  }
}

const LIST = new JsonReader({ type: 'array' });

function parseBuilds(value: unknown): readonly ZuulBuild[] {
  return LIST.check(value).map(parseBuild);
}
