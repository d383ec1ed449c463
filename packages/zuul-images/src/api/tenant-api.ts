import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { ApiSession } from './api-session.ts';
import type { ApiUrl } from './api-url.ts';
import { ZuulError } from './zuul-error.ts';

/** Limit of tenants in a message. */
const MOST_NAMES = 10;

/** The API of one tenant. */
export interface TenantApi {
  readonly tenant: string;
  /** Base URL with a slash at its end, for `builds`. */
  readonly base: string;
}

/**
 * Finds the API of a tenant. An API that is white-labelled for one tenant names it in its `info`. Without a configured
 * tenant, the API must have exactly one.
 *
 * @throws ZuulError `invalid-settings` if it is not clear which tenant, or the API is that of another; and those of
 *   the session
 */
export async function findTenantApi(
  session: ApiSession,
  { root, tenant }: ApiUrl,
  signal: AbortSignal,
): Promise<TenantApi> {
  const served = await session.get(new URL('api/info', root), servedTenant, signal);
  if (served !== undefined) {
    if (tenant !== undefined && tenant !== served) {
      throw new ZuulError(
        'invalid-settings',
        `Zuul API ${root}: it serves the tenant "${served}" alone, and not "${tenant}"; correct the tenant or the api-url`,
      );
    }
    return { tenant: served, base: `${root}api/` };
  }
  const name = tenant ?? (await onlyTenant(session, root, signal));
  return { tenant: name, base: `${root}api/tenant/${encodeURIComponent(name)}/` };
}

const INFO = new JsonReader({
  type: 'object',
  required: ['info'],
  properties: { info: { type: 'object', properties: { tenant: { type: ['string', 'null'] } } } },
});

function servedTenant(value: unknown): string | undefined {
  return INFO.check(value).info.tenant ?? undefined;
}

async function onlyTenant(session: ApiSession, root: string, signal: AbortSignal): Promise<string> {
  const names = await session
    .get(new URL('api/tenants', root), tenantNames, signal)
    .catch((error: unknown) => {
      // without access to the list, the tenant's own API may still be accessible
      if (error instanceof ZuulError && (error.status === 401 || error.status === 403)) return [];
      throw error;
    });
  const [only] = names;
  if (only !== undefined && names.length === 1) return only;
  const known = names.length === 0 ? '' : ` (${names.slice(0, MOST_NAMES).join(', ')})`;
  throw new ZuulError(
    'invalid-settings',
    `Zuul API ${root}: it does not serve one tenant alone, and no tenant is configured; name one${known}`,
  );
}

const TENANTS = new JsonReader({
  type: 'array',
  items: { type: 'object', required: ['name'], properties: { name: { type: 'string' } } },
});

function tenantNames(value: unknown): string[] {
  return TENANTS.check(value).map(({ name }) => name);
}
