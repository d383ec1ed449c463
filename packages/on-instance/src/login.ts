import { ImageError } from '@nodepool-builder/image-builder';
import type { Login } from './remote-shell.ts';
import type { OnInstance } from './settings.ts';
import { type SshIdentity, sshLogin } from './ssh/ssh-login.ts';

/** Login methods by `connection`. */
const LOGINS: Readonly<
  Record<OnInstance['connection'], (settings: OnInstance, identity: SshIdentity) => Login | Promise<Login>>
> = {
  ssh: (_settings, identity) => sshLogin(identity),
  winrm: async ({ winrm }, { username, hostKey }) => {
    if (winrm === undefined) {
      throw new ImageError('invalid-configuration', 'the connection winrm needs settings "winrm"; add them');
    }
    // imported on demand: SSH needs no HTTP client
    const { winrmLogin } = await import('./winrm/winrm-login.ts');
    return winrmLogin({ username, hostKey, settings: winrm });
  },
};

/** @throws ImageError `invalid-configuration` */
export async function loginOf(settings: OnInstance, identity: Omit<SshIdentity, 'username'>): Promise<Login> {
  const { connection, username } = settings;
  return await LOGINS[connection](settings, { ...identity, username });
}
