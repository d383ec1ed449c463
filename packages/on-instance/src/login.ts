import { ImageError } from '@nodepool-builder/image-builder';
import type { Login } from './remote-shell.ts';
import type { OnInstance } from './settings.ts';
import { type SshIdentity, sshLogin } from './ssh/ssh-login.ts';

/** How one logs in, by `connection`. */
const LOGINS: Readonly<
  Record<OnInstance['connection'], (settings: OnInstance, identity: SshIdentity) => Login | Promise<Login>>
> = {
  ssh: (_settings, identity) => sshLogin(identity),
  winrm: async ({ winrm }, { username, hostKey }) => {
    if (winrm === undefined) {
      throw new ImageError('invalid-configuration', 'the connection winrm needs settings "winrm"; add them');
    }
    // not at the top: an HTTP client that SSH does without
    const { winrmLogin } = await import('./winrm/winrm-login.ts');
    return winrmLogin({ username, hostKey, settings: winrm });
  },
};

/** @throws ImageError `invalid-configuration` */
export async function loginOf(settings: OnInstance, identity: Omit<SshIdentity, 'username'>): Promise<Login> {
  const { connection, username } = settings;
  return await LOGINS[connection](settings, { ...identity, username });
}
