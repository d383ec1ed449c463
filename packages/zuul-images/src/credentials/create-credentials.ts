import { type Clock, SYSTEM_CLOCK } from '@nodepool-builder/image-builder/module-kit';
import { ZuulHttp } from '../api/zuul-http.ts';
import { bearerToken } from './bearer-token.ts';
import { type ClientSettings, requestToken } from './client-credentials.ts';
import { ANONYMOUS, type ZuulCredentials } from './credentials.ts';
import { IssuedTokens } from './issued-token.ts';
import { type MintSettings, mintToken } from './minted-token.ts';
import { readSecret } from './secret-file.ts';
import { tokenOfCommand } from './token-command.ts';

/** How to authenticate to a Zuul API. */
export type ZuulAuthentication =
  | { readonly type: 'none' }
  /** A file that holds a token, and that something else keeps fresh. */
  | { readonly type: 'token-file'; readonly path: string }
  /** A command that writes a token to its standard output. */
  | { readonly type: 'token-command'; readonly command: readonly [string, ...string[]] }
  | ({ readonly type: 'shared-secret' } & MintSettings)
  | ({ readonly type: 'client-credentials' } & ClientSettings);

/** What {@link createCredentials} needs. */
export interface CredentialsOptions {
  /** Asks the OpenID provider; default: one that trusts the usual authorities. */
  readonly http?: ZuulHttp;
  readonly clock?: Clock;
}

type Create<Settings> = (settings: Settings, options: Required<CredentialsOptions>) => ZuulCredentials;

const KINDS: {
  readonly [Type in ZuulAuthentication['type']]: Create<Extract<ZuulAuthentication, { type: Type }>>;
} = {
  none: () => ANONYMOUS,
  'token-file': ({ path }) => new TokenFile(path),
  'token-command': ({ command }, { clock }) =>
    new IssuedTokens((signal) => tokenOfCommand(command, signal), clock),
  'shared-secret': (settings, { clock }) => new IssuedTokens(() => mintToken(settings, clock.now()), clock),
  'client-credentials': (settings, { http, clock }) =>
    new IssuedTokens((signal) => requestToken(settings, { http, clock, signal }), clock),
};

/** The source of tokens that the settings describe. Nothing is read or asked before the first token is needed. */
export function createCredentials(
  settings: ZuulAuthentication,
  { http = new ZuulHttp(), clock = SYSTEM_CLOCK }: CredentialsOptions = {},
): ZuulCredentials {
  const create: Create<never> = KINDS[settings.type];
  return create(settings as never, { http, clock });
}

/** A token from a file that something else keeps fresh. It is read for each request, so a new one is used at once. */
class TokenFile implements ZuulCredentials {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async token(): Promise<string> {
    return bearerToken(await readSecret(this.#path), `the token file ${this.#path}`);
  }

  reject(): void {}
}
