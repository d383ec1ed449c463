import type { CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import { list, record, text, time } from './answer-shape.ts';
import type { CatalogEndpoint } from './catalog.ts';
import type { Token, TokenExchange } from './token.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

const INTERFACES = ['public', 'internal', 'admin'] as const;

/** `POST /v2.0/tokens` (Identity API v2.0: removed in Queens, but old clouds have nothing else). */
export function v2Exchange(auth: KeystoneAuth): TokenExchange {
  return { path: '/tokens', body: { auth: claim(auth) }, read };
}

function claim(auth: KeystoneAuth): object {
  // never chosen for one: see the discovery
  if (auth.type === 'application-credential') return {};
  const credentials =
    auth.type === 'password'
      ? { passwordCredentials: { ...user(auth.user), password: auth.password } }
      : { token: { id: auth.token } };
  return { ...credentials, ...tenant(auth.scope.project ?? {}) };
}

function user({ id, name }: NamedInDomain): object {
  return id === undefined ? { username: name } : { userId: id };
}

function tenant({ id, name }: NamedInDomain): object {
  if (id !== undefined) return { tenantId: id };
  return name === undefined ? {} : { tenantName: name };
}

function read({ value, now }: Parameters<TokenExchange['read']>[0]): Token {
  const access = record(record(value, 'the answer').access, 'access');
  const token = record(access.token, 'access.token');
  const expiresAt = time(token.expires, 'access.token.expires');
  // Rackspace gives no issued_at
  const issuedAt = token.issued_at === undefined ? now : v2Time(token.issued_at);
  const project = token.tenant === undefined ? undefined : record(token.tenant, 'access.token.tenant').id;
  return {
    id: text(token.id, 'access.token.id'),
    expiresAt: now + (expiresAt - issuedAt),
    catalog: list(access.serviceCatalog ?? [], 'access.serviceCatalog').flatMap(v2Endpoints),
    projectId: typeof project === 'string' ? project : undefined,
  };
}

/** v2 writes `issued_at` in UTC without saying so. */
function v2Time(value: unknown): number {
  const written = text(value, 'access.token.issued_at');
  return time(/(Z|[+-]\d\d:?\d\d)$/.test(written) ? written : `${written}Z`, 'access.token.issued_at');
}

function v2Endpoints(entry: unknown): CatalogEndpoint[] {
  const service = record(entry, 'access.serviceCatalog[]');
  return list(service.endpoints ?? [], 'endpoints').flatMap((value) => {
    const endpoint = record(value, 'endpoints[]');
    return INTERFACES.filter((which) => endpoint[`${which}URL`] !== undefined).map((which) => ({
      type: text(service.type, 'access.serviceCatalog[].type'),
      name: typeof service.name === 'string' ? service.name : undefined,
      interface: which,
      regionId: typeof endpoint.region === 'string' ? endpoint.region : undefined,
      url: text(endpoint[`${which}URL`], `endpoints[].${which}URL`),
    }));
  });
}
