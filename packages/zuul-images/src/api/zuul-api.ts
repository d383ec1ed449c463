import type { Logger } from '@nodepool-builder/image-builder';
import { listPages, retryText } from '@nodepool-builder/image-builder/internal';
import {
  type Clock,
  CloudError,
  JsonReader,
  type RetryLimits,
  RetryPolicy,
} from '@nodepool-builder/image-builder/plugin';
import { hasAdminClaim } from '../credentials/json-web-token.ts';
import { createCredentials, type ZuulCredentials } from '../credentials/zuul-credentials.ts';
import type { ZuulSettings } from '../zuul-settings.ts';
import { type ApiUrl, parseApiUrl } from './api-url.ts';
import { tenantApiUrl } from './tenant-api.ts';
import { type BuildQuery, parseBuild, type ZuulBuild } from './zuul-build.ts';
import { readAuthorities, ZuulHttp } from './zuul-http.ts';

const RETRIES: RetryLimits = { attempts: 4, firstDelay: 1, maxDelay: 30, maxRetryAfter: 60 };

/** Builds per page: Zuul's default, and fewer for a server or proxy that rejects it. */
const PAGE_LENGTHS = [50, 10] as const;

/** Maximum number of unreadable builds for each of which a warning is logged. */
const MAX_WARNINGS = 100;

/** Flags of `builds` by Zuul's release, newest first. Old servers reject `complete` (4.7) and `final` (4.0). */
const SERVER_GENERATIONS: readonly (readonly string[])[] = [['complete', 'final'], ['final'], []];

const LIST = new JsonReader({ type: 'array' });

/** Settings of a {@link ZuulApi}. */
export interface ZuulApiOptions {
  /** `api-url` in any of the forms that {@link parseApiUrl} accepts. */
  readonly apiUrl: string;
  readonly logger: Logger;
  /** Credentials for the API. Default: none. */
  readonly credentials?: ZuulCredentials | undefined;
  /** HTTP client. Default: a client without additional authorities. */
  readonly http?: ZuulHttp;
  readonly clock?: Clock;
  /** Maximum attempts of a request. Default 4. */
  readonly attempts?: number;
  /** Jitter of the delays, from 0 to below 1. */
  readonly random?: () => number;
}

/**
 * Opens the API of an image, with its credentials and trusted authorities.
 *
 * @throws CloudError `invalid-settings`
 */
export async function openZuulApi(
  settings: ZuulSettings,
  logger: Logger,
  options: Pick<ZuulApiOptions, 'attempts'> = {},
): Promise<ZuulApi> {
  const { 'api-url': apiUrl, auth } = settings;
  const http = new ZuulHttp({ furtherCa: await readAuthorities(settings) });
  const credentials = createCredentials(auth, { http });
  return new ZuulApi({ ...options, apiUrl, credentials, http, logger });
}

/** Part of a list. */
interface PageRange {
  readonly skip: number;
  readonly limit: number;
}

/** The REST API of Zuul, for one tenant. It sends the token, and retries transient errors. */
export class ZuulApi {
  /** Name in messages, without secrets. */
  readonly name: string;
  readonly #url: ApiUrl;
  readonly #logger: Logger;
  readonly #credentials: ZuulCredentials | undefined;
  readonly #http: ZuulHttp;
  readonly #retries: RetryPolicy;
  /** Base URL of the tenant's API, once it is known. */
  #base: string | undefined;
  /** Index into {@link SERVER_GENERATIONS}. */
  #generation = 0;
  #warned = false;
  readonly #unreadable = new Set<string>();

  /** @throws CloudError `invalid-settings` */
  constructor(options: ZuulApiOptions) {
    const { apiUrl, logger, credentials, http = new ZuulHttp(), ...others } = options;
    const { attempts = RETRIES.attempts, ...time } = others;
    this.#url = parseApiUrl(apiUrl);
    this.name = `Zuul API ${this.#url.root}`;
    this.#logger = logger;
    this.#credentials = credentials;
    this.#http = http;
    this.#retries = new RetryPolicy({ ...RETRIES, attempts }, time);
  }

  /**
   * Lists the successful builds of a job page by page, ordered by start time, latest first. Every filter is checked
   * here as well. A build that started earlier may end later, so the first build is not always the newest.
   *
   * @throws CloudError
   * @throws the signal's reason
   */
  async *builds(query: BuildQuery, signal: AbortSignal): AsyncGenerator<readonly ZuulBuild[]> {
    const seen = new Set<string>();
    const list = { subject: `${this.name}: list of builds`, pageSizes: PAGE_LENGTHS };
    let length = 0;
    const pages = listPages(list, async (marker = '0', size = PAGE_LENGTHS[0]) => {
      length = size;
      const entries = await this.#page(query, { skip: Number(marker), limit: size }, signal);
      const next = String(Number(marker) + size);
      return { entries, next: entries.length < size ? undefined : next };
    });
    for await (const entries of pages) {
      const page = this.#read(entries);
      // Builds that end between two requests shift the list, so that a page may start with known builds.
      const fresh = page.filter(({ uuid }) => !seen.has(uuid));
      for (const { uuid } of fresh) seen.add(uuid);
      yield fresh.filter((build) => matchesQuery(build, query));
      if (entries.length >= length && fresh.length === 0) {
        throw new CloudError(
          'invalid-response',
          `${this.name}: it lists the same builds on every page; check that proxies forward the query`,
        );
      }
    }
  }

  /** Reads the builds of a page. A build that cannot be read is ignored with a warning, and not imported. */
  #read(entries: readonly unknown[]): readonly ZuulBuild[] {
    const builds: ZuulBuild[] = [];
    let reason = '';
    for (const entry of entries) {
      try {
        builds.push(parseBuild(entry));
      } catch (error) {
        reason = (error as Error).message;
        if (this.#unreadable.has(reason) || this.#unreadable.size >= MAX_WARNINGS) continue;
        this.#unreadable.add(reason);
        this.#logger.warn(`${this.name}: ignoring a build that cannot be read: ${reason}`);
      }
    }
    if (builds.length > 0 || entries.length === 0) return builds;
    const request = `GET ${new URL('builds', this.#base).pathname}`;
    const message = `the response is invalid: ${reason}; check that the URL belongs to the service`;
    throw new CloudError('invalid-response', `${this.name}: ${request}: ${message}`);
  }

  async #page(query: BuildQuery, range: PageRange, signal: AbortSignal): Promise<readonly unknown[]> {
    this.#base ??= await tenantApiUrl((url, read) => this.#get(url, read, signal), this.#url);
    for (let generation = this.#generation; ; generation += 1) {
      try {
        const parameters = buildParameters(query, SERVER_GENERATIONS[generation] ?? [], range);
        const url = new URL(`builds?${parameters.toString()}`, this.#base);
        const page = await this.#get(url, (value) => LIST.check(value), signal);
        this.#generation = generation;
        return page;
      } catch (error) {
        if (!(error instanceof CloudError) || error.status !== 404) throw error;
        const isLast = generation === SERVER_GENERATIONS.length - 1;
        if (error.code === 'tenant-unknown' || isLast) {
          // The server may have been replaced by another one.
          this.#base = undefined;
          this.#generation = 0;
          throw error;
        }
        this.#logger.debug(
          `${this.name}: it may be too old for the parameters of this request; trying with fewer`,
        );
      }
    }
  }

  async #get<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    return await this.#retries.run(() => this.#send(url, read, signal), {
      signal,
      onRetry: (next) => this.#logger.info(`${next.error.message}; ${retryText(next)}`),
    });
  }

  /** Sends a request with a token, and again with another token after a 401. */
  async #send<T>(url: URL, read: (value: unknown) => T, signal: AbortSignal): Promise<T> {
    const name = `${this.name}: GET ${url.pathname}`; // excludes the query, which is long
    if (this.#credentials === undefined) return await this.#http.json(name, { url, signal }, read);
    return await this.#credentials.run(signal, async ({ value: token }) => {
      this.#warnOfAdminToken(token);
      const headers = { authorization: `Bearer ${token}` };
      return await this.#http.json(name, { url, headers, signal }, read);
    });
  }

  /**
   * Warns once about an admin token, which Zuul rejects by default, and which otherwise permits far more than reading
   * builds.
   */
  #warnOfAdminToken(token: string): void {
    if (this.#warned || !hasAdminClaim(token)) return;
    this.#warned = true;
    this.#logger.warn(
      `${this.name}: the token has the claim zuul.admin, the rights of a tenant's administrator; ` +
        'use shared-secret, which creates tokens that only read',
    );
  }
}

/**
 * Returns the query of `builds`. A repeated parameter matches any of its values.
 *
 * @param flags must not be repeated, because Zuul then responds with 500
 */
export function buildParameters(
  query: BuildQuery,
  flags: readonly string[],
  { skip, limit }: PageRange,
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

/** Returns whether a build matches exactly. The server treats `*` as a wildcard, and may ignore case. */
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
