import type { AuthScope, CloudAuth, NamedInDomain } from '../cloud-settings.ts';
import { list, record, text, time } from './answer-shape.ts';
import type { CatalogEndpoint } from './catalog.ts';
import type { Token, TokenExchange } from './token.ts';

type KeystoneAuth = Exclude<CloudAuth, { type: 'none' }>;

/** `POST /v3/auth/tokens` (Identity API v3, "Authentication and token management"). */
export function v3Exchange(auth: KeystoneAuth): TokenExchange {
  return { path: '/auth/tokens', body: { auth: claim(auth) }, read };
}

function claim(auth: KeystoneAuth): object {
  if (auth.type === 'application-credential') {
    const { id, name, user = {}, secret } = auth;
    const which = id === undefined ? { name, user: named(user) } : { id };
    // without a scope, Keystone refuses one here: the credential has its own
    return { identity: identity('application_credential', { ...which, secret }) };
  }
  const method =
    auth.type === 'password'
      ? identity('password', { user: { ...named(auth.user), password: auth.password } })
      : identity('token', { id: auth.token });
  const scope = scopeOf(auth.scope);
  return { identity: method, ...(scope !== undefined && { scope }) };
}

function identity(method: string, value: object): object {
  return { methods: [method], [method]: value };
}

function scopeOf({ project, domain, system }: AuthScope): object | undefined {
  if (project !== undefined) return { project: named(project) };
  if (domain !== undefined)
    return { domain: domain.id === undefined ? { name: domain.name } : { id: domain.id } };
  return system === undefined ? undefined : { system: { all: true } };
}

function named({ id, name, domainId, domainName }: NamedInDomain): object {
  if (id !== undefined) return { id };
  if (domainId !== undefined) return { name, domain: { id: domainId } };
  return domainName === undefined ? { name } : { name, domain: { name: domainName } };
}

function read({ headers, value, now }: Parameters<TokenExchange['read']>[0]): Token {
  const token = record(record(value, 'the answer').token, 'token');
  const expiresAt = time(token.expires_at, 'token.expires_at');
  const issuedAt = token.issued_at === undefined ? now : time(token.issued_at, 'token.issued_at');
  return {
    id: text(headers['x-subject-token'], 'the header X-Subject-Token'),
    expiresAt: now + (expiresAt - issuedAt),
    catalog: list(token.catalog ?? [], 'token.catalog').flatMap(v3Endpoints),
    projectId:
      token.project === undefined
        ? undefined
        : text(record(token.project, 'token.project').id, 'token.project.id'),
  };
}

function v3Endpoints(entry: unknown): CatalogEndpoint[] {
  const service = record(entry, 'token.catalog[]');
  return list(service.endpoints ?? [], 'endpoints').map((value) => {
    const endpoint = record(value, 'endpoints[]');
    return {
      type: text(service.type, 'token.catalog[].type'),
      name: typeof service.name === 'string' ? service.name : undefined,
      interface: text(endpoint.interface, 'endpoints[].interface'),
      regionId: [endpoint.region_id, endpoint.region].find((region) => typeof region === 'string'),
      url: text(endpoint.url, 'endpoints[].url'),
    };
  });
}
