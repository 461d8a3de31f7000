/// Shortened listings of one directory, as servers wrote them.
enum Captured {
  /// nginx 1.22, `autoindex on`, with fewer blanks.
  static let nginx = #"""
    <html>
    <head><title>Index of /</title></head>
    <body>
    <h1>Index of /</h1><hr><pre><a href="../">../</a>
    <a href="sub/">sub/</a>     21-Nov-2026 09:01                   -
    <a href="with%20dir%20%26%20x/">with dir &amp; x/</a>     21-Nov-2026 09:01                   -
    <a href="%2541.txt">%41.txt</a>     21-Nov-2026 09:01               12345
    <a href="a%26amp%3Bb">a&amp;amp;b</a>     21-Nov-2026 09:01               12345
    <a href="a%26b.txt">a&amp;b.txt</a>     21-Nov-2026 09:01               12345
    <a href="a%2Bb.txt">a+b.txt</a>     21-Nov-2026 09:01               12345
    <a href="a%3Ab.txt">a:b.txt</a>     21-Nov-2026 09:01               12345
    <a href="double%22q.txt">double&quot;q.txt</a>     21-Nov-2026 09:01               12345
    <a href="gr%C3%BC%C3%9Fe.txt">grüße.txt</a>     21-Nov-2026 09:01               12345
    <a href="what%3F.txt">what?.txt</a>     21-Nov-2026 09:01               12345
    <a href="with%20space.txt">with space.txt</a>     21-Nov-2026 09:01               12345
    </pre><hr></body>
    </html>
    """#

  /// Apache 2.4, `FancyIndexing HTMLTable`.
  static let apache = #"""
    <!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN" "http://www.w3.org/TR/html4/strict.dtd">
    <html>
     <head>
      <title>Index of /</title>
     </head>
     <body>
    <h1>Index of /</h1>
      <table>
       <tr><th valign="top">&nbsp;</th><th><a href="?C=N;O=D">Name</a></th><th><a href="?C=M;O=A">Last modified</a></th><th><a href="?C=S;O=A">Size</a></th><th><a href="?C=D;O=A">Description</a></th></tr>
       <tr><th colspan="5"><hr></th></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="%2541.txt">%41.txt</a>                </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="a&amp;amp;b">a&amp;amp;b</a>                </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="a&amp;b.txt">a&amp;b.txt</a>                </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="a+b.txt">a+b.txt</a>                </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="./a:b.txt">a:b.txt</a>                </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="double%22q.txt">double&quot;q.txt</a>           </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="gr%c3%bc%c3%9fe.txt">grüße.txt</a>            </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="sub/">sub/</a>                   </td><td align="right">2026-11-21 09:01  </td><td align="right">  - </td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="what%3f.txt">what?.txt</a>              </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="with%20dir%20&amp;%20x/">with dir &amp; x/</a>          </td><td align="right">2026-11-21 09:01  </td><td align="right">  - </td><td>&nbsp;</td></tr>
    <tr><td valign="top">&nbsp;</td><td><a href="with%20space.txt">with space.txt</a>         </td><td align="right">2026-11-21 09:01  </td><td align="right"> 12K</td><td>&nbsp;</td></tr>
       <tr><th colspan="5"><hr></th></tr>
    </table>
    </body></html>
    """#

  /// lighttpd 1.4.69, without its style sheet and script.
  static let lighttpd = #"""
    <!DOCTYPE html>
    <html>
    <head>
    <title>Index of /</title>
    </head>
    <body>
    <h2>Index of /</h2>
    <div class="list">
    <table summary="Directory Listing" cellpadding="0" cellspacing="0">
    <thead><tr><th class="n">Name</th><th class="m">Last Modified</th><th class="s">Size</th><th class="t">Type</th></tr></thead>
    <tr class="d"><td class="n"><a href="sub/">sub</a>/</td><td class="m">2026-Nov-21 09:01:38</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
    <tr class="d"><td class="n"><a href="with%20dir%20%26%20x/">with dir &#x26; x</a>/</td><td class="m">2026-Nov-21 09:01:38</td><td class="s">- &nbsp;</td><td class="t">Directory</td></tr>
    <tr><td class="n"><a href="%2541.txt">%41.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="a%26amp%3Bb">a&#x26;amp;b</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="a%26b.txt">a&#x26;b.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="a%2Bb.txt">a+b.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="a%3Ab.txt">a:b.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="double%22q.txt">double&#x22;q.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="gr%C3%BC%C3%9Fe.txt">grüße.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="what%3F.txt">what?.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    <tr><td class="n"><a href="with%20space.txt">with space.txt</a></td><td class="m">2026-Nov-21 09:01:38</td><td class="s">12.0K</td><td class="t">application/octet-stream</td></tr>
    </tbody>
    </table>
    </div>
    """#

  /// Python 3.11's `http.server`.
  static let python = #"""
    <!DOCTYPE HTML>
    <html lang="en">
    <head>
    <meta charset="utf-8">
    <title>Directory listing for /</title>
    </head>
    <body>
    <h1>Directory listing for /</h1>
    <hr>
    <ul>
    <li><a href="%2541.txt">%41.txt</a></li>
    <li><a href="a%26amp%3Bb">a&amp;amp;b</a></li>
    <li><a href="a%26b.txt">a&amp;b.txt</a></li>
    <li><a href="a%2Bb.txt">a+b.txt</a></li>
    <li><a href="a%3Ab.txt">a:b.txt</a></li>
    <li><a href="double%22q.txt">double"q.txt</a></li>
    <li><a href="gr%C3%BC%C3%9Fe.txt">grüße.txt</a></li>
    <li><a href="sub/">sub/</a></li>
    <li><a href="what%3F.txt">what?.txt</a></li>
    <li><a href="with%20dir%20%26%20x/">with dir &amp; x/</a></li>
    <li><a href="with%20space.txt">with space.txt</a></li>
    </ul>
    <hr>
    </body>
    </html>
    """#

  /// Caddy 2.6, without its style sheet and blanks.
  static let caddy = #"""
    <header>
    <h1>
    <a href="">/</a>
    </h1>
    </header>
    <main>
    <div class="meta">
    <div id="summary">
    <span class="meta-item"><b>2</b> directories</span>
    <span class="meta-item"><b>18</b> files</span>
    <span class="meta-item"><input type="text" placeholder="filter" id="filter" onkeyup='filter()'></span>
    </div>
    </div>
    <div class="listing">
    <table aria-describedby="summary">
    <thead>
    <tr>
    <th></th>
    <th>
    <a href="?sort=namedirfirst&order=desc"
    class="icon"><svg width="1em" height=".5em" version="1.1"
    viewBox="0 0 12.922194 6.0358899">
    <use xlink:href="#up-arrow"></use>
    </svg></a>
    <a
    href="?sort=name&order=asc">Name</a>
    </th>
    <th>
    <a
    href="?sort=size&order=asc">Size</a>
    </th>
    <th class="hideable">
    <a
    href="?sort=time&order=asc">Modified</a>
    </th>
    <th class="hideable"></th>
    </tr>
    </thead>
    <tbody>
    <tr class="file">
    <td></td>
    <td>
    <a href="./sub/">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 317 259">
    <use xlink:href="#folder"></use>
    </svg>
    <span class="name">sub/</span>
    </a>
    </td>
    <td data-order="-1">&mdash;</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./with%20dir%20&amp;%20x/">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 317 259">
    <use xlink:href="#folder"></use>
    </svg>
    <span class="name">with dir &amp; x/</span>
    </a>
    </td>
    <td data-order="-1">&mdash;</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./%2541.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">%41.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./a&amp;amp;b">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">a&amp;amp;b</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./a&amp;b.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">a&amp;b.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./a+b.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">a+b.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./a:b.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">a:b.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./double%22q.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">double&#34;q.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./gr%C3%BC%C3%9Fe.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">grüße.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./what%3F.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">what?.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    <tr class="file">
    <td></td>
    <td>
    <a href="./with%20space.txt">
    <svg width="1.5em" height="1em" version="1.1" viewBox="0 0 265 323">
    <use xlink:href="#file"></use>
    </svg>
    <span class="name">with space.txt</span>
    </a>
    </td>
    <td data-order="12345">12 KiB</td>
    <td class="hideable"><time datetime=" 2026-11-21T09:01:38Z">11/21/2026 09:01:38 AM +00:00</time></td>
    <td class="hideable"></td>
    </tr>
    </tbody></table></div></main>
    """#
}
