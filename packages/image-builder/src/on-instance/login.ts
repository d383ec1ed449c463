import { ImageError } from '../errors.ts';
import type { Login } from './remote-shell.ts';
import type { OnInstance } from './settings.ts';
import { type SshIdentity, sshLogin } from './ssh-login.ts';

/** How one logs in, by `connection`. */
const LOGINS: Readonly<
  Partial<Record<OnInstance['connection'], (settings: OnInstance, identity: SshIdentity) => Login>>
> = {
  ssh: (_settings, identity) => sshLogin(identity),
};

/** @throws ImageError `invalid-configuration` */
export function loginOf(settings: OnInstance, identity: Omit<SshIdentity, 'username'>): Login {
  const login = LOGINS[settings.connection];
  if (login !== undefined) return login(settings, { ...identity, username: settings.username });
  throw new ImageError(
    'invalid-configuration',
    `there is no connection "${settings.connection}"; use one of: ${Object.keys(LOGINS).join(', ')}`,
  );
}
