// An authorization server of these tests' own, on loopback: one person uses it, who grants what is asked for until told
// otherwise. It checks what OAuth 2.1 has such servers check, and shares no code with the page.

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

const LIFETIME_S = 300;

type Grant = { readonly form: URLSearchParams; readonly scope: string };

export class Authority {
  issuer = "";
  /** Which requests it answered, with the type of grant of each for a token. */
  readonly requests: string[] = [];
  /** What the person grants, at most. */
  grants = ["read", "memory"];
  /** What it changes in its answers to the page. */
  changes: (back: URLSearchParams) => void = () => {};
  takesDocuments = true;
  /** The ids of clients that an administrator registered, with where each is led back to. */
  readonly registered = new Map<string, string>();
  private readonly keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
  private readonly codes = new Map<string, Grant>();
  private readonly renewing = new Map<string, Grant>();
  private readonly server = createServer((request, response) => {
    this.answer(request, response).catch((error: unknown) => {
      response.writeHead(400, { "access-control-allow-origin": "*", "content-type": "application/json" });
      response.end(JSON.stringify({ error: "invalid_request", error_description: String(error) }));
    });
  });

  async start(): Promise<void> {
    await once(this.server.listen(0, "127.0.0.1"), "listening");
    const address = this.server.address();
    assert.ok(address && typeof address === "object");
    this.issuer = `http://127.0.0.1:${address.port}/team`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  /** Return a token for a resource that is valid for so many seconds. */
  token(resource: string, scope: string, seconds = LIFETIME_S): string {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: this.issuer, aud: resource, sub: "ada", exp: now + seconds, scope, jti: randomUUID() };
    const parts = [{ alg: "ES256", kid: "a", typ: "at+jwt" }, claims];
    const signed = parts.map((each) => Buffer.from(JSON.stringify(each)).toString("base64url")).join(".");
    const key = { key: this.keys.privateKey, dsaEncoding: "ieee-p1363" } as const;
    return `${signed}.${sign("sha256", Buffer.from(signed), key).toString("base64url")}`;
  }

  private async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", this.issuer);
    const body: Buffer[] = [];
    for await (const part of request) body.push(Buffer.from(part));
    const form = new URLSearchParams(Buffer.concat(body).toString());
    this.requests.push(`${request.method} ${url.pathname} ${form.get("grant_type") ?? ""}`.trim());
    if (url.pathname === "/team/authorize") {
      response.writeHead(302, { location: await this.authorized(url.searchParams) }).end();
      return;
    }
    const found =
      url.pathname === "/team/token" ? this.issued(form) : this.documents()[url.pathname.replace(/^\/team/, "")];
    response.writeHead(found ? 200 : 404, { "access-control-allow-origin": "*", "content-type": "application/json" });
    response.end(JSON.stringify(found ?? {}));
  }

  private documents(): Readonly<Record<string, object>> {
    const key = { ...this.keys.publicKey.export({ format: "jwk" }), kid: "a", use: "sig" };
    return {
      "/keys": { keys: [key] },
      "/.well-known/openid-configuration": {
        issuer: this.issuer,
        authorization_endpoint: `${this.issuer}/authorize`,
        token_endpoint: `${this.issuer}/token`,
        jwks_uri: `${this.issuer}/keys`,
        code_challenge_methods_supported: ["S256"],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: this.takesDocuments,
      },
    };
  }

  private async authorized(asked: URLSearchParams): Promise<string> {
    const [id, address] = [asked.get("client_id") ?? "", asked.get("redirect_uri") ?? ""];
    const addresses = this.registered.get(id) ?? (this.takesDocuments && (await documented(id)));
    assert.equal(addresses, address);
    assert.deepEqual([asked.get("response_type"), asked.get("code_challenge_method")], ["code", "S256"]);
    const scope = asked.get("scope")?.split(" ") ?? [];
    const code = randomUUID();
    this.codes.set(code, { form: asked, scope: scope.filter((each) => this.grants.includes(each)).join(" ") });
    const back = new URLSearchParams({ code, state: asked.get("state") ?? "", iss: this.issuer });
    this.changes(back);
    return `${address}?${back}`;
  }

  private issued(form: URLSearchParams): object {
    const taken = form.get("grant_type") === "refresh_token" ? this.renewing : this.codes;
    const proof = form.get("code") ?? form.get("refresh_token") ?? "";
    const grant = taken.get(proof);
    taken.delete(proof);
    assert.ok(grant, "it was granted, and not used yet");
    const same = taken === this.codes ? ["client_id", "resource", "redirect_uri"] : ["client_id", "resource"];
    for (const name of same) assert.equal(form.get(name), grant.form.get(name), name);
    const verifier = form.get("code_verifier") ?? "";
    if (taken === this.codes) {
      assert.ok(verifier.length >= 43, "the verifier cannot be guessed");
      assert.equal(createHash("sha256").update(verifier).digest("base64url"), grant.form.get("code_challenge"));
    }
    const refresh = randomUUID();
    this.renewing.set(refresh, grant);
    const access = this.token(grant.form.get("resource") ?? "", grant.scope);
    return { access_token: access, token_type: "Bearer", refresh_token: refresh, scope: grant.scope };
  }
}

/** Read the document at the address of a client's id, and return where the client is led back to. */
async function documented(id: string): Promise<string> {
  const client: unknown = await (await fetch(id)).json();
  assert.ok(client && typeof client === "object" && "client_id" in client && "redirect_uris" in client);
  assert.equal(client.client_id, id);
  return String(client.redirect_uris);
}
