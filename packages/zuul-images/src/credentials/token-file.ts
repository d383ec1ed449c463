import { bearerToken } from './bearer-token.ts';
import type { ZuulCredentials } from './credentials.ts';
import { readSecret } from './secret-file.ts';

/** A token from a file that something else keeps fresh. It is read for each request, so a new one is used at once. */
export class TokenFile implements ZuulCredentials {
  readonly #path: string;

  constructor(path: string) {
    this.#path = path;
  }

  async token(): Promise<string> {
    return bearerToken(await readSecret(this.#path), `the token file ${this.#path}`);
  }

  reject(): void {}
}
